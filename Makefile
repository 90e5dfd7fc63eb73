# make demo   a real throwaway server with an incident on it, and what stanch says of it
# make test   everything that CI runs
# make bench  the ratios against psql

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] && echo env || echo sudo)

.PHONY: demo test bench servers cargo lint

demo: servers cargo
	cargo build --quiet
	./target/debug/stanch drill lock-queue --once

test: servers cargo lint
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --no-fail-fast; \
	else \
		cargo test --no-fail-fast -- --test-threads 6; \
	fi

lint: cargo
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items

bench: servers cargo
	cargo bench --bench waiters
	cargo bench --bench forest

# PostgreSQL (server, client, contrib programs) and PgBouncer, from the system's packages where they are missing.
servers:
	@missing=(); \
	compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null || missing+=(postgresql); \
	command -v psql >/dev/null || missing+=(postgresql-client); \
	[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || missing+=(pgbouncer); \
	if [ "$${#missing[@]}" -gt 0 ]; then \
		echo "installing: $${missing[*]}"; \
		$(AS_ROOT) apt-get update -qq; \
		$(AS_ROOT) DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null; \
	fi

cargo:
	@command -v cargo >/dev/null || { \
		echo "Rust is missing: install it with rustup, or: apt-get install cargo (1.95 or newer)"; exit 1; }
