"""The operators' port: is it alive, is it ready, and its metrics."""

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from gateway.health import readiness
from gateway.wiring import House
from gateway.worker_metrics import worker_page


def ops_app(house: House) -> FastAPI:
    app = FastAPI(title="Faregate operations", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def alive() -> dict[str, str]:
        """The process answers; says nothing of what it depends on."""
        return {"status": "alive"}

    @app.get("/readyz")
    async def ready() -> JSONResponse:
        """200 when calls can be taken, else 503 with the reasons."""
        reasons = readiness(house)
        return JSONResponse({"ready": not reasons, "reasons": reasons}, status_code=503 if reasons else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        page = house.metrics.page() + await worker_page(house.valkey)
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")

    return app
