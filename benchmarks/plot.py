"""Pictures of figures as SVG, readable on light and dark pages: they bring their own background for both."""

from __future__ import annotations

import math
from html import escape

from benchmarks.measure import Bar, Plot

WIDTH, LABELS, ROW, TOP = 820, 350, 26, 64
PLOT_HEIGHT, LEFT, RIGHT, LEGEND = 260, 64, 24, 20
LIGHT = ("#0550ae", "#59636e", "#bc4c00", "#8250df", "#1a7f37", "#9a6700", "#bf3989", "#1b7c83")
DARK = ("#58a6ff", "#9198a1", "#f0883e", "#bc8cff", "#3fb950", "#d29922", "#f778ba", "#39c5cf")


def _rules(page: str, ink: str, soft: str, grid: str, target: str, colours: tuple[str, ...]) -> str:
    fixed = f".page {{ fill: {page} }} .ink {{ fill: {ink} }} .soft {{ fill: {soft} }} .grid {{ stroke: {grid} }}"
    lines = f".target {{ stroke: {target} }} .range {{ stroke: {ink} }}"
    named = (f".fill{n} {{ fill: {colour} }} .line{n} {{ stroke: {colour} }}" for n, colour in enumerate(colours))
    return " ".join([fixed, lines, *named])


STYLE = "\n".join(
    [
        "svg { font: 13px system-ui, sans-serif } polyline { fill: none; stroke-width: 2 }",
        _rules("#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#cf222e", LIGHT),
        "@media (prefers-color-scheme: dark) {",
        _rules("#0d1117", "#f0f6fc", "#9198a1", "#3d444d", "#ff7b72", DARK),
        "}",
    ]
)


def draw(plot: Plot) -> str:
    """Return the picture as a document."""
    height, parts = _draw_bars(plot) if plot.bars else _draw_curves(plot)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        f' aria-label="{escape(plot.title)}">'
    )
    about = f"{plot.y}{f', by {plot.x}' if plot.x else ''}{'; the red line is the target' if plot.target is not None else ''}"
    title = [_text(16, 26, plot.title, "ink", 'font-size="16" font-weight="600"'), _text(16, 46, about, "soft")]
    body = ["<style>" + STYLE + "</style>", f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>', *title, *parts]
    return "\n".join([head, *body, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str = "ink", more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _draw_bars(plot: Plot) -> tuple[int, list[str]]:
    """Draw a bar per row with the range of its rounds; the scale begins at nothing, so that lengths compare."""
    most = max([bar.high for bar in plot.bars] + ([plot.target] if plot.target is not None else []))
    scale = (WIDTH - LABELS - 90) / most if most > 0 else 0.0
    parts = [part for number, bar in enumerate(plot.bars) for part in _draw_bar(bar, TOP + number * ROW, scale)]
    end = TOP + len(plot.bars) * ROW
    if plot.target is not None:
        parts.append(_line(LABELS + plot.target * scale, TOP - 4, LABELS + plot.target * scale, end, "target"))
    return end + 16, parts


def _draw_bar(bar: Bar, y: float, scale: float) -> list[str]:
    weight = 'text-anchor="end" font-weight="600"' if bar.ours else 'text-anchor="end"'
    middle, width = y + ROW / 2 - 2, max(1.0, bar.value * scale)
    return [
        _text(LABELS - 10, middle + 4, bar.name, "ink", weight),
        f'<rect class="fill{0 if bar.ours else 1}" x="{LABELS}" y="{y:.1f}" width="{width:.1f}" height="{ROW - 8}"/>',
        _line(LABELS + bar.low * scale, middle, LABELS + bar.high * scale, middle, "range"),
        _text(LABELS + bar.high * scale + 8, middle + 4, _number(bar.value), "soft"),
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 3, 10, 30 and so on, from just below the lowest value to just above the highest."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    known = [digit * 10.0**power for power in powers for digit in (1, 3)]
    first = max(number for number, value in enumerate(known) if value <= low)
    last = min(number for number, value in enumerate(known) if value >= high and number > first)
    return known[first : last + 1]


def _draw_curves(plot: Plot) -> tuple[int, list[str]]:
    """Draw lines over two logarithmic axes, with a legend below."""
    xs = [x for curve in plot.curves for x, _ in curve.points]
    ys = [y for curve in plot.curves for _, y in curve.points] + ([plot.target] if plot.target is not None else [])
    x_low, x_high = math.log10(min(xs)), math.log10(max(xs))
    ticks = _ticks(min(ys), max(ys))
    y_low, y_high = math.log10(ticks[0]), math.log10(ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low or 1)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return LEFT + across * (WIDTH - LEFT - RIGHT - 10), TOP + (1 - up) * PLOT_HEIGHT

    parts = []
    for value in ticks:
        _, y = at(min(xs), value)
        parts += [_line(LEFT, y, WIDTH - RIGHT, y, "grid"), _text(LEFT - 8, y + 4, _number(value), "soft", 'text-anchor="end"')]
    for value in sorted(set(xs)):
        x, _ = at(value, ticks[0])
        parts.append(_text(x, TOP + PLOT_HEIGHT + 18, _number(value), "soft", 'text-anchor="middle"'))
    if plot.target is not None:
        _, y = at(min(xs), plot.target)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "target"))
    below = TOP + PLOT_HEIGHT + 42
    for number, curve in enumerate(plot.curves):
        placed = [at(x, y) for x, y in curve.points]
        colour = number % len(LIGHT)
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline class="line{colour}" points="{joined}"/>')
        parts += [f'<circle class="fill{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in placed]
        column, row = number % 2, number // 2
        parts.append(
            f'<rect class="fill{colour}" x="{LEFT + column * 370}" y="{below + row * LEGEND - 10}" width="12" height="12"/>'
        )
        parts.append(_text(LEFT + column * 370 + 20, below + row * LEGEND, curve.name))
    return below + math.ceil(len(plot.curves) / 2) * LEGEND + 4, parts
