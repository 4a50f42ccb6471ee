// Requests to the dashboard's server. Whatever goes wrong is an ApiError with a sentence that can be
// shown as it is. The cookie that the address with the token set goes along by itself.

export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
  ) {
    super(message);
  }
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { method: "GET", ...(signal && { signal }) });
}

export function post<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { method: "POST", ...(signal && { signal }) });
}

export function url(path: string): string {
  return `api/${path}`;
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url(path), init);
  } catch (failure) {
    if (init.signal?.aborted) throw failure;
    throw new ApiError("The dashboard does not answer. Is the session still running?", 0);
  }
  const body: unknown = await response.json().catch(() => null);
  if (response.ok && body !== null) return body as T;
  throw new ApiError(sentence(response.status, body), response.status);
}

function sentence(status: number, body: unknown): string {
  if (status === 401) {
    return "This page's token is not accepted (any more). `oxiray dashboard` prints an address that is.";
  }
  if (body !== null && typeof body === "object" && "error" in body) return String(body.error);
  return `The dashboard answered with status ${status} and without saying why.`;
}

export function isAbort(failure: unknown): boolean {
  return failure instanceof DOMException && failure.name === "AbortError";
}
