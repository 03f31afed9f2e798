# The one image of every program: `posse scheduler`, `posse controllers`, `posse admission`.
# It runs as nobody in particular and writes nothing but /tmp, so its root can be read-only.

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /posse
COPY requirements/runtime.txt requirements/runtime.txt
RUN /posse/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /posse/bin/pip install --no-cache-dir --no-deps . \
 && /posse/bin/pip uninstall --yes pip \
 && /posse/bin/python -m compileall -q /posse/lib

FROM python:3.13-slim
RUN python -m pip uninstall --yes --quiet pip \
 && useradd --system --uid 65532 --user-group --home-dir /tmp --no-create-home posse
COPY --from=build /posse /posse
ENV PATH=/posse/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["posse"]
CMD ["--help"]
