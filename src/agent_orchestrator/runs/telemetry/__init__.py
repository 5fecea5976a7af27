"""OpenTelemetry: spans and metrics that are derived from the journals, so that exporting again gives the same spans.

    trace.py      ids of traces and spans, hashed from run and effect
    spans.py      a run's journal → its spans
    exporter.py   reads on in the journals, and exports what has ended
    otlp.py       spans → a collector; needs the extra `otel`, and is loaded by whoever exports

Nothing here is in the way of a run, nor can it make one fail.
"""
