"""The program `hookledger`, pointed at the deployed API, and the events of the sample provider."""

import json
import os
import re
import subprocess
import time
from datetime import datetime, timezone

TENANT, WALLET = "t1", "w1"
# 1200 input tokens at 3.00 and 340 output tokens at 15.00 per million: 0.0036 + 0.0051 = 0.0087.
USAGE = {"input_tokens": 1200, "output_tokens": 340}

TRIES = 5
BUSY = re.compile(r'\(503, unavailable\)|"status": ?503')


class Tool:
    def __init__(self, program, url, secret, out):
        self.program, self.out = str(program), out
        self.environment = {**os.environ, "HOOKLEDGER_URL": url, "ACME_WEBHOOK_SECRET": secret}

    def run(self, *arguments, exit_code=0, with_errors=False):
        """Runs a verb; its stdout, with stderr where asked. Any other exit code than the expected one is a failure, but
        a 503 is tried again as its text advises: an emulator on a busy machine may take longer than the functions wait."""
        for _ in range(TRIES):
            done = subprocess.run(
                [self.program, *arguments], env=self.environment, capture_output=True, text=True, timeout=120, check=False,
            )
            if done.returncode == exit_code or not BUSY.search(done.stdout + done.stderr):
                break
            time.sleep(2)
        if done.returncode != exit_code:
            said = (done.stderr or done.stdout).strip()
            raise AssertionError(f"`hookledger {' '.join(arguments)}` ended with {done.returncode}, not {exit_code}: {said}")
        return done.stdout + done.stderr if with_errors else done.stdout

    def json(self, *arguments, exit_code=0):
        return json.loads(self.run(*arguments, "--json", exit_code=exit_code))

    def send(self, event, body, *options, exit_code=0):
        """Sends a body as the provider would; how often each answer came."""
        file = self.out / "event.json"
        file.write_text(body, encoding="utf-8")
        told = self.json("send", "acme", str(file), "--id", event, *options, exit_code=exit_code)
        return {f"{answer['status']} {answer['result']}": answer["count"] for answer in told["answers"]}

    def submit(self, job, hold="5.00"):
        self.run(
            "job", "submit", TENANT, job, "--provider", "acme", "--ref", f"p-{job}", "--model", "small-1",
            "--wallet", WALLET, "--hold", hold,
        )

    def job(self, job):
        return self.json("job", "show", TENANT, job)

    def wallet(self):
        return self.json("wallet", "show", TENANT, WALLET)


def event(kind, data):
    """An event of acme, as of now."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"type": kind, "timestamp": now, "data": {"tenant": TENANT, **data}})


def completed(job):
    """The event of a job's success."""
    return event("job.completed", {"job_id": job, "id": f"p-{job}", "model": "small-1", "sequence": 3, "usage": USAGE})


def created(asset):
    """The event of an asset, which is only sent on."""
    return event("asset.created", {"asset_id": asset})
