// Who are you: the same user and password as clients of the broker have.

import { ask, needsLogin } from "../shell/api.js";
import { html, useState } from "../shell/html.js";
import { Problem } from "./states.js";

export function Login() {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isAsking, setAsking] = useState(false);
  /** @param {any} event */
  async function sent(event) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    setAsking(true);
    try {
      await ask("/api/v1/session", { method: "POST", body: { user: given.get("user"), password: given.get("password") } });
      needsLogin.value = false;
      window.location.reload();
    } catch (refused) {
      setError(/** @type {Error} */ (refused));
    } finally {
      setAsking(false);
    }
  }
  return html`<form class="login" method="post" onSubmit=${sent}>
    <h1>Log in</h1>
    <p>With a user of the broker: PLAIN or SCRAM.</p>
    ${error && html`<${Problem} error=${error} />`}
    <label>User <input name="user" autocomplete="username" required autocapitalize="off" spellcheck=${false} /></label>
    <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
    <button type="submit" disabled=${isAsking}>Log in</button>
  </form>`;
}
