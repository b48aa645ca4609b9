// The newest state of some things, for as long as the page is looked at.

const AGAIN_MS = 3000;

export class Live {
  #watch;
  #handlers;
  #source = null;
  #again = null;
  #isPaused = false;

  // handlers: state(name, state), refused(name, error), away().
  constructor(watch, handlers) {
    this.#watch = watch;
    this.#handlers = handlers;
    document.addEventListener("visibilitychange", () => this.#follow());
    this.#follow();
  }

  set isPaused(isPaused) {
    this.#isPaused = isPaused;
    this.#follow();
  }

  // A browser has six connections to one broker: a page that nobody sees gives its one back.
  #follow() {
    if (this.#isPaused || document.hidden) this.#close();
    else if (this.#source === null) this.#open();
  }

  #close() {
    clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
  }

  #open() {
    const query = new URLSearchParams({ watch: this.#watch });
    const source = new EventSource(`/api/v1/live?${query}`);
    this.#source = source;
    source.addEventListener("state", (event) => {
      const { watch, state } = JSON.parse(event.data);
      this.#handlers.state(watch, state);
    });
    source.addEventListener("refused", (event) => {
      const { watch, error } = JSON.parse(event.data);
      this.#handlers.refused(watch, error);
    });
    source.addEventListener("error", () => {
      this.#handlers.away();
      // A stream that was cut is opened again by the browser, one that was refused is not.
      if (source.readyState !== EventSource.CLOSED) return;
      this.#close();
      this.#again = setTimeout(() => this.#follow(), AGAIN_MS);
    });
  }
}
