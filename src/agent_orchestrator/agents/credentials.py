"""Which variables of the environment hold what a coding agent logs in with: its own vendor's, and never another's.

Only names stand here. Values are read from the environment of whoever drives the run, handed to that agent alone, and
never stored; `pass_credentials = false` leaves an agent with the login that it keeps itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

AWS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"),
)

_OFF = ("", "0", "false", "no", "off")


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """The variables of one vendor."""

    keys: tuple[str, ...]
    """Each is a way to log in: whoever names one for an agent wants that one and not the others."""
    rest: tuple[str, ...] = ()
    """The address of its service and the place of its own login."""
    clouds: dict[str, tuple[str, ...]] = {}
    """The switches by which it is reached through a cloud, and what it needs of that cloud then."""


ANTHROPIC = Vendor(
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    rest=(
        *("ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR"),
        *("CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
    ),
    clouds={
        "CLAUDE_CODE_USE_BEDROCK": (*AWS, "ANTHROPIC_BEDROCK_BASE_URL", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
        "CLAUDE_CODE_USE_VERTEX": (
            *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION"),
            *("ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_BASE_URL", "CLAUDE_CODE_SKIP_VERTEX_AUTH"),
        ),
        "CLAUDE_CODE_USE_FOUNDRY": (
            *("ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"),
            "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        ),
    },
)

OPENAI = Vendor(
    keys=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"),
    rest=(
        *("CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_CA_CERTIFICATE"),
        *("OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT"),
    ),
)

GOOGLE = Vendor(
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    rest=(
        *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID", "GOOGLE_CLOUD_LOCATION"),
        *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    ),
)

_PROVIDERS: dict[str, tuple[str, ...]] = {
    "amazon-bedrock": AWS,
    "azure": ("AZURE_API_KEY", "AZURE_RESOURCE_NAME"),
    "fireworks-ai": ("FIREWORKS_API_KEY",),
    "github-copilot": (),
    "github-models": (),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "google-vertex": (
        *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
        *("GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION"),
    ),
    "moonshotai": ("MOONSHOT_API_KEY",),
    "togetherai": ("TOGETHER_API_KEY",),
    "zai": ("ZHIPU_API_KEY",),
}
"""Providers whose variables are not called after them. GITHUB_TOKEN opens far more than a model: it has to be asked for."""


def provider_of(model: str | None) -> Vendor:
    """Return the variables of the provider in a model's name, as in `anthropic/claude-sonnet-4-5`; none without one."""
    provider, slash, _ = (model or "").partition("/")
    if not slash or not provider.replace("-", "").isalnum():
        return Vendor(keys=())
    return Vendor(keys=_PROVIDERS.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",)))


def names_of(vendor: Vendor) -> tuple[str, ...]:
    """Return the names of all its variables."""
    clouds = (name for switch, needed in vendor.clouds.items() for name in (switch, *needed))
    return (*vendor.keys, *vendor.rest, *clouds)


def names_to_pass(vendor: Vendor, asked: Collection[str], found: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names to pass on of those `found`: without the keys that are not meant, and clouds that are not used."""
    keys = () if any(name in asked for name in vendor.keys) else vendor.keys
    clouds = [name for switch, needed in vendor.clouds.items() if is_on(found.get(switch, "")) for name in (switch, *needed)]
    return tuple(dict.fromkeys(name for name in (*keys, *vendor.rest, *clouds) if found.get(name)))


def is_on(value: str) -> bool:
    """Return True if a switch is set."""
    return value.strip().lower() not in _OFF
