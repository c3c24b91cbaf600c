"""The application that events are sent on to: the table [destinations.app] of providers.toml. It takes what comes, and
loses the answer to the first request, as a network does."""

import base64
import hashlib
import hmac
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class App:
    def __init__(self, secret):
        self.key = base64.b64decode(secret.removeprefix("whsec_"))
        self.requests = []
        app = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                app.requests.append((self.path, headers, body))
                if len(app.requests) == 1:
                    return  # the connection ends without an answer
                self.send_response(204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"

    def is_signed(self, headers, body):
        """By Standard Webhooks: HMAC-SHA256 over id, time and body, in base64 behind `v1,`."""
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        mac = base64.b64encode(hmac.new(self.key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{mac}" in headers["webhook-signature"].split(" ")
