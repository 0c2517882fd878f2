"""What is measured, pinned to one core each: nginx, a Rust router, the bare pass-through and the governed gateway."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gateway.local.ports import free_port
from tests.benchmarks.peers import smg, smg_program
from tests.benchmarks.processes import Target, pinned, program, wait_for_port
from tests.support.gateway import town
from tests.support.services import running_postgres, running_valkey, scratch

MODEL = "smollm2-135m-instruct"
GOVERNED = "gateway, governed"
PASSED = "bare pass-through"
NGINX = "nginx proxy"
_NGINX_PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


@contextmanager
def standing(core: int, others: set[int]) -> Iterator[list[Target]]:
    """All targets, up and answering; everything that is not measured stays off `core`."""
    with ExitStack() as stack:
        stack.enter_context(pinned(others))
        engine_port = free_port()
        stack.enter_context(program(["tests.benchmarks.engine", "--port", str(engine_port)]))
        wait_for_port(engine_port)
        targets = []
        if proxy := nginx_program():
            targets.append(stack.enter_context(nginx(proxy, engine_port, core)))
        if router := smg_program():
            targets.append(stack.enter_context(smg(router, engine_port, core)))
        targets.append(stack.enter_context(_pass_through(engine_port, core)))
        targets.append(stack.enter_context(_governed(engine_port, core)))
        yield targets


def nginx_program() -> str | None:
    return shutil.which("nginx", path=_NGINX_PLACES)


@contextmanager
def nginx(program_path: str, engine_port: int, core: int) -> Iterator[Target]:
    port = free_port()
    with scratch("nginx") as folder, pinned({core}):
        config = folder / "nginx.conf"
        config.write_text(_NGINX.format(folder=folder, port=port, engine=engine_port))
        process = subprocess.Popen(
            [program_path, "-c", str(config), "-p", str(folder), "-e", "stderr", "-g", "daemon off;"],
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            wait_for_port(port)
            yield Target(NGINX, port, process.pid)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _pass_through(engine_port: int, core: int) -> Iterator[Target]:
    port = free_port()
    with pinned({core}):
        running = program(["tests.benchmarks.passthrough", "--port", str(port), "--engine", f"http://127.0.0.1:{engine_port}"])
        with running as process:
            wait_for_port(port)
            yield Target(PASSED, port, process.pid)


@contextmanager
def _governed(engine_port: int, core: int) -> Iterator[Target]:
    """Keys, limits, queue, metering, logs and metrics as in production, with a worker that drains."""
    url = f"http://127.0.0.1:{engine_port}"
    fleet = f'[[replica]]\nid = "bench"\nmodel = "{MODEL}"\nengine = "vllm"\nurl = "{url}"\nslots = 4096\n'
    with ExitStack() as stack:
        database_url = stack.enter_context(stack.enter_context(running_postgres()).database())
        redis_url = stack.enter_context(running_valkey()).url
        built = stack.enter_context(town(database_url, redis_url, stack.enter_context(scratch("bench")), fleet))
        built.plan("bench", quota_per_day=None)
        customer = built.key("bench")
        built.worker()
        with pinned({core}):
            gateway = built.gateway()
        yield Target(GOVERNED, gateway.port, gateway.process.pid, customer.token)


_NGINX = """\
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000000;
    upstream engine {{ server 127.0.0.1:{engine}; keepalive 512; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://engine;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""
