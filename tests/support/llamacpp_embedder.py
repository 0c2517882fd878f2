"""llama.cpp with the model of `make up`, started so that it embeds: `python -m tests.support.llamacpp_embedder PORT`."""

import signal
import sys

from gateway.local.llamacpp import model_file


def main() -> None:
    import xllamacpp

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1])
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.n_ctx = params.n_batch = params.n_ubatch = 1024
    params.n_parallel = 2
    params.ui = False
    engine = xllamacpp.Server(params)
    print(f"llama.cpp embeds on {engine.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
