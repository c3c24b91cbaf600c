"""A way to the deployed API by a plain address: the program takes http://127.0.0.1:PORT and sends no Host of its own,
while an emulator tells APIs apart by the host name (ID.execute-api.HOST), which not every resolver knows.

Passes each request on unchanged but for the Host, and the answer back unchanged. A request of /control is signed with
the AWS identity that it is given, as the program does it by itself for a server on another machine.
"""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NOT_PASSED_ON = {"host", "connection", "transfer-encoding", "content-length"}
ANSWER_SECONDS = 60


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # fifty at once must not be refused by the listening socket


def signed(credentials, method, url, body, headers):
    """The headers with a signature for API Gateway (service execute-api)."""
    request = AWSRequest(method=method, url=url, data=body, headers={"content-type": headers.get("content-type", "")})
    SigV4Auth(credentials, "execute-api", "us-east-1").add_auth(request)
    return {**headers, **dict(request.headers.items())}


def start(endpoint, api_host, key=("test", "test")):
    """Starts it on a free port of this machine, for the caller with that access key; gives back its URL."""
    target, credentials = urlsplit(endpoint), Credentials(*key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length) if length else None
            headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
            if self.path.startswith("/control/"):
                headers = signed(credentials, self.command, f"http://{api_host}{self.path}", body, headers)
            onward = http.client.HTTPConnection(target.hostname, target.port or 80, timeout=ANSWER_SECONDS)
            try:
                onward.request(self.command, self.path, body, {**headers, "Host": api_host})
                answer = onward.getresponse()
                data = answer.read()
            finally:
                onward.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = forward

        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
