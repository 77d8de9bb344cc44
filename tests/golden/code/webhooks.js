#!/usr/bin/env node
'use strict';

const crypto = require('crypto');
const { Router, json: parseJson } = require('express');
import pino from 'pino';

const TOLERANCE_SECONDS = 300;
const HANDLED = ['payment.succeeded', 'payment.failed'];

/**
 * Checks the signature that the bank sends along.
 * @returns {boolean}
 */
function verify(payload, header, secret = process.env.SECRET) {
  const [timestamp, signature] = header.split(',');
  const expected = crypto.createHmac('sha256', secret).update(`${timestamp}.${payload}`).digest('hex');
  return expected === signature && Date.now() / 1000 - Number(timestamp) < TOLERANCE_SECONDS;
}

const toEvent = ({ body }) => JSON.parse(body);

async function* replay(events, { since, ...rest }) {
  for (const event of events) {
    if (event.created >= since) yield event;
  }
}

class WebhookQueue extends EventTarget {
  #pending = [];
  static size = 10;

  constructor(log = pino()) {
    super();
    this.log = log;
  }

  // Puts an event behind the others.
  push(event) {
    this.#pending.push(event);
    this.dispatchEvent(new Event('pushed'));
  }

  static async from(source) {
    const queue = new WebhookQueue();
    for await (const event of source) queue.push(event);
    return queue;
  }

  get #oldest() { return this.#pending[0]; }

  drain = async (work) => {
    while (this.#oldest) await work(this.#pending.shift());
  };
}

WebhookQueue.prototype.clear = function () {
  this.log.info('cleared');
};

const router = Router();
router.post('/webhooks', parseJson(), async (request, response) => {
  if (!verify(request.rawBody, request.get('signature'))) {
    response.status(400).end();
    return;
  }
  response.status(202).end();
});

module.exports = { router, verify };
module.exports.handler = async function handle(event, context) {
  return toEvent(event);
};
