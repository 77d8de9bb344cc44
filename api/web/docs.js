"use strict";
// The description of the API is behind the same token as the API; a browser's navigation cannot send one, a script can.
const form = document.getElementById("token");

function show(description, token) {
  form.hidden = true;
  const ui = SwaggerUIBundle({
    dom_id: "#swagger-ui",
    // Requests go where this page is, which may be below a path of another site.
    spec: { ...description, servers: [{ url: new URL(".", location.href).pathname.replace(/\/$/, "") || "/" }] },
    deepLinking: true,
    // Nothing is asked of a validator elsewhere.
    validatorUrl: null,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    onComplete: () => token && ui.preauthorizeApiKey("token", token),
  });
}

async function load(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch("openapi.json", { headers });
  if (answer.ok) {
    show(await answer.json(), token);
    return;
  }
  form.hidden = false;
  form.querySelector("output").textContent = token ? (await answer.json()).detail : "";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  load(new FormData(form).get("token"));
});
load("");
