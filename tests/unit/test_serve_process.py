"""The server of stripesim serve as a process: signals end it whatever it does, and its forms are bounded."""

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest

pytest.importorskip(
    "starlette", reason="starlette is not installed (pip install stripesim[web])"
)
pytest.importorskip(
    "uvicorn", reason="uvicorn is not installed (pip install stripesim[web])"
)

from starlette.exceptions import HTTPException
from starlette.requests import Request

from stripesim.web.app import REPORT_BYTES_MAX
from stripesim.web.guard import FormReader

HOST = "127.0.0.1"
START_S = 120.0
#: Time limit for processes to end on a busy machine [s].
END_S = 60.0
FORM_TYPE = "application/x-www-form-urlencoded"


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@pytest.fixture
def server():
    """A server that answers, as a process, and its port."""
    port = free_port()
    command = [sys.executable, "-m", "stripesim", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    yield process, port
    process.kill()
    process.wait()


def post(port, path, body, content_type):
    """Send a form; the answer may never come."""
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    try:
        connection.request("POST", path, body, {"Content-Type": content_type})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None


def heaviest_report():
    """Return an upload as large as is allowed: a report with one list of many numbers."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="r.json"\r\n\r\n{"a": ['
    tail = b"1]}\r\n--x--\r\n"
    numbers = b"1," * ((REPORT_BYTES_MAX - len(head) - len(tail)) // 2)
    return head + numbers + tail


def children_of(pid):
    return [
        int(child)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def is_running(pid):
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


def wait_until(condition):
    """Wait until a condition holds, and fail at the time limit."""
    end_s = time.monotonic() + END_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.05)


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="/proc does not list processes here"
)
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 0)],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_signal_ends_the_server_in_the_middle_of_work(server, number, status):
    process, port = server
    options = "&".join(f"{side}.hosts=30&{side}.osds_per_host=4" for side in "ab")
    # A stated rate of repair needs no simulated rebuild.
    form = f"{options}&rate_per_s=1e6&repair_mb_per_s=100"
    assert post(port, "/simulate", form, FORM_TYPE) == 200
    body = heaviest_report()
    upload = (port, "/upload", body, "multipart/form-data; boundary=x")
    threading.Thread(target=post, args=upload, daemon=True).start()
    # The simulation has two worker processes, and the upload has one.
    wait_until(lambda: len(children_of(process.pid)) >= 3)
    workers = children_of(process.pid)
    process.send_signal(number)
    # It takes two seconds on an idle machine, but tests may run on a busy one.
    assert process.wait(timeout=END_S) == status
    wait_until(lambda: not any(map(is_running, workers)))


def test_workers_end_with_a_server_that_is_killed(server):
    process, port = server
    form = "rate_per_s=100&repair_mb_per_s=100"
    assert post(port, "/simulate", form, FORM_TYPE) == 200
    workers = children_of(process.pid)
    assert workers
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, workers)))


def form_request(body, *, delay_s=0.0):
    """Return a request whose form comes in one part, after a while."""

    async def receive():
        await anyio.sleep(delay_s)
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", FORM_TYPE.encode())],
    }
    return Request(scope, receive)


async def status_of(reader, request, most_bytes=1000):
    """Return the status of the reply to a form: 200 if it is accepted."""
    try:
        async with reader.read(request, most_bytes):
            return 200
    except HTTPException as error:
        return error.status_code


def test_a_form_is_bounded_in_size():
    async def read():
        reader = FormReader()
        return await status_of(
            reader, form_request(b"a=" + b"x" * 998), 1000
        ), await status_of(reader, form_request(b"a=" + b"x" * 999), 1000)

    assert anyio.run(read) == (200, 413)


def test_forms_of_slow_senders_are_abandoned():
    async def read():
        reader = FormReader(wall_s_max=0.05)
        return await status_of(reader, form_request(b"a=1", delay_s=5))

    assert anyio.run(read) == 408


def test_a_client_that_leaves_within_a_form_gets_no_traceback():
    async def read():
        messages = [
            {"type": "http.request", "body": b"a=1&", "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive():
            return messages.pop(0)

        request = form_request(b"")
        return await status_of(FormReader(), Request(request.scope, receive))

    assert anyio.run(read) == 400


def test_all_forms_together_are_bounded():
    async def read():
        reader = FormReader(total_bytes_max=100)
        body = b"a=" + b"x" * 58
        async with reader.read(form_request(body), 1000):
            # 60 bytes are held, and 60 more would be 120.
            while_held = await status_of(reader, form_request(body))
        return while_held, await status_of(reader, form_request(body))

    assert anyio.run(read) == (503, 200)


def test_a_port_in_use_is_refused_before_the_address_is_shown(command):
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        status, out, err = command("serve", "--port", port)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"--port: got {port} (")
    assert "wanted a free port" in line


@pytest.mark.parametrize("named", [(), ("quickstart",)])
def test_overrides_change_the_scenario_that_the_page_starts_from(
    command, monkeypatch, named
):
    served = []
    monkeypatch.setattr("stripesim.web.app.create_app", served.append)
    monkeypatch.setattr("uvicorn.run", lambda app, **options: None)
    sets = ("--set", "cluster.hosts=20")
    status, _, err = command("serve", *named, *sets, "--port", free_port())
    assert status == 0, err
    assert [scenario.cluster.hosts for scenario in served] == [20]
