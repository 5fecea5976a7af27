# orc without any agent: base an image of your own on it that adds the agent CLI you use.
ARG BASE=python:3.13-slim
FROM ${BASE}

# bubblewrap is the wall of --sandbox; tini reaps what agents leave behind, which pid 1 has to.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git tini \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
COPY docs /source/docs
RUN python3 -m venv /opt/orc \
    && /opt/orc/bin/pip install --no-cache-dir /source \
    && ln -s /opt/orc/bin/orc /usr/local/bin/orc \
    && rm -rf /source

RUN useradd --create-home orc
USER orc
WORKDIR /repo
ENTRYPOINT ["tini", "--", "orc"]
CMD ["--help"]
