// Who are you: the same user and password as clients of the broker have, or the broker's token.

import { ask, needsLogin } from "../shell/api.js";
import { html, useState } from "../shell/html.js";
import { Problem } from "./states.js";

/** @param {{ needed: import("../api.d.ts").LoginNeeded }} given */
export function Login({ needed }) {
  if (needed.logins.length === 0) return html`<div class="login"><h1>Login impossible</h1><p>${needed.message}</p></div>`;
  return html`<${LoginForm} logins=${needed.logins} />`;
}

/** @param {{ logins: string[] }} given */
function LoginForm({ logins }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isAsking, setAsking] = useState(false);
  const hasToken = logins.includes("token");
  const hasPasswords = logins.includes("password");
  /** @param {any} event */
  async function sent(event) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    setAsking(true);
    try {
      await ask("/api/v1/session", { method: "POST", body: { user: given.get("user") ?? "", password: given.get("password") } });
      needsLogin.value = null;
      window.location.reload();
    } catch (refused) {
      setError(/** @type {Error} */ (refused));
    } finally {
      setAsking(false);
    }
  }
  return html`<form class="login" method="post" onSubmit=${sent}>
    <h1>Log in</h1>
    ${hasPasswords && html`<p>With a user of the broker: PLAIN or SCRAM.</p>`}
    ${hasToken && html`<p>With the token of <code>barnabas.http.bearer.token</code>${hasPasswords ? " as the password, without a user" : ""}.</p>`}
    ${error && html`<${Problem} error=${error} />`}
    ${hasPasswords && html`<label>User <input name="user" autocomplete="username" required=${!hasToken} autocapitalize="off" spellcheck=${false} /></label>`}
    <label>${hasPasswords ? "Password" : "Token"} <input name="password" type="password" autocomplete="current-password" required /></label>
    <button type="submit" disabled=${isAsking}>Log in</button>
  </form>`;
}
