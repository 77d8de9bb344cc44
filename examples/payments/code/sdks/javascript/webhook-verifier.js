"use strict";

const { createHmac, timingSafeEqual } = require("node:crypto");

const TOLERANCE_SECONDS = 300;

/**
 * Splits "t=1768554120,v1=5257a8..." into its parts. Several v1 entries are normal while a secret is rotated.
 */
function parseHeader(header) {
  const parsed = { timestamp: NaN, signatures: [] };
  for (const part of String(header).split(",")) {
    const [name, value] = part.split("=", 2);
    if (name === "t") parsed.timestamp = Number(value);
    if (name === "v1" && value) parsed.signatures.push(value);
  }
  return parsed;
}

/**
 * Checks that a webhook was sent by Heron Pay, recently.
 *
 * `rawBody` must be the bytes as they came: a body that Express has parsed and you have serialized again has another
 * signature. Returns the parsed event, throws otherwise.
 */
function verifyWebhook(rawBody, header, secret, now = Date.now() / 1000) {
  const { timestamp, signatures } = parseHeader(header);
  if (!Number.isFinite(timestamp)) {
    throw new Error("Heron-Signature has no timestamp");
  }
  if (Math.abs(now - timestamp) > TOLERANCE_SECONDS) {
    throw new Error(`webhook is ${Math.round(now - timestamp)} s old, more than ${TOLERANCE_SECONDS} s`);
  }
  const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(rawBody).digest();
  const genuine = signatures.some((signature) => {
    const given = Buffer.from(signature, "hex");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!genuine) {
    throw new Error("Heron-Signature does not match; is the endpoint's secret the right one?");
  }
  return JSON.parse(rawBody.toString("utf8"));
}

/** Express middleware; mount it before any JSON body parser. */
function heronWebhook(secret) {
  return (request, response, next) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("error", next);
    request.on("end", () => {
      try {
        request.heronEvent = verifyWebhook(Buffer.concat(pieces), request.get("Heron-Signature"), secret);
        next();
      } catch (error) {
        response.status(401).send(error.message);
      }
    });
  };
}

module.exports = { verifyWebhook, heronWebhook };
