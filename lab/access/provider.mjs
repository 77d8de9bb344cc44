// npm's certified `oidc-provider` on loopback, with one client and people who need no password.
//   node provider.mjs FOLDER PORT REDIRECT_ADDRESS SIGNED_OUT_ADDRESS PEOPLE
// FOLDER: where it is installed. PEOPLE: a file, {"alice": ["board"]}: groups by name, read at every question.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, port, redirect, signedOut, people] = process.argv.slice(2);
const entry = createRequire(resolve(folder, "package.json")).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(entry).href);

const provider = new Provider(`http://localhost:${port}`, {
  clients: [{
    client_id: "nornweave", client_secret: process.env.OIDC_SECRET,
    redirect_uris: [redirect], post_logout_redirect_uris: [signedOut], grant_types: ["authorization_code", "refresh_token"],
  }],
  claims: { profile: ["name", "groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false, // as most others do: what a scope asks for stands in the ID token
  findAccount: (_, id) => {
    const groups = JSON.parse(readFileSync(people, "utf8"))[id];
    return groups && { accountId: id, claims: () => ({ sub: id, name: id, email: `${id}@example.org`, email_verified: true, groups }) };
  },
  issueRefreshToken: () => true,
  rotateRefreshToken: () => true,
  pkce: { required: () => true },
});
provider.listen(Number(port), "127.0.0.1");
