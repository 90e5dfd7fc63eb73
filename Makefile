# make demo          a real throwaway server with an incident on it, and what stanch says of it
# make test          everything that CI runs: on the system's PostgreSQL, the oldest and the newest
# make test-matrix   every query and subcommand on PostgreSQL 12 to 18
# make bench         the ratios against psql and redis-cli

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] && echo env || echo sudo)

# Servers that the system's packages don't have: outside the tree, where the user that runs them can read.
SERVERS := /var/tmp/stanch-servers-$(shell id -u)
# What the tests are told of them; what isn't there is left out, and said.
TOLD = STANCH_TEST_PG_BINS=$$(for m in $(1); do [ ! -e $(SERVERS)/$$m ] || printf '%s:' $(SERVERS)/$$m; done) \
	STANCH_TEST_MAJORS="$$(for m in $(1); do [ ! -e $(SERVERS)/$$m ] || printf '%s ' $$m; done)"; \
	export STANCH_TEST_PG_BINS STANCH_TEST_MAJORS; \
	export STANCH_TEST_CACHES=$(SERVERS); \
	[ ! -e $(SERVERS)/libpq ] || export STANCH_TEST_LIBPQ=$(SERVERS)/libpq; \
	[ ! -e $(SERVERS)/libraries ] || export STANCH_TEST_QUEUES=$(SERVERS)/libraries

.PHONY: demo test test-matrix bench servers locale oldest-newest all-majors caches libraries cargo lint

demo: servers cargo
	cargo build --quiet
	./target/debug/stanch drill lock-queue --once

test: servers locale oldest-newest caches libraries cargo lint
	$(call TOLD,12 18); \
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --no-fail-fast; \
	else \
		cargo test --no-fail-fast -- --test-threads 6; \
	fi

test-matrix: servers all-majors cargo
	$(call TOLD,12 13 14 15 16 17 18); \
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --no-fail-fast --test live -E 'test(matrix) + test(connecting)'; \
	else \
		cargo test --no-fail-fast --test live -- --test-threads 6 matrix:: connecting::; \
	fi

lint: cargo
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items

bench: servers cargo
	cargo bench --bench waiters
	cargo bench --bench forest
	cargo bench --bench budget
	cargo bench --bench redis
	cargo bench --bench logs

# PostgreSQL (server, client, contrib programs), PgBouncer, Redis and openssl, from the system's packages where they are missing.
servers:
	@missing=(); \
	compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null || missing+=(postgresql); \
	command -v psql >/dev/null || missing+=(postgresql-client); \
	[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || missing+=(pgbouncer); \
	command -v redis-server >/dev/null || missing+=(redis-server); \
	command -v openssl >/dev/null || missing+=(openssl); \
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates); \
	if [ "$${#missing[@]}" -gt 0 ]; then \
		echo "installing: $${missing[*]}"; \
		$(AS_ROOT) apt-get update -qq; \
		$(AS_ROOT) DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null; \
	fi

# Japanese messages of a server: its packages have them, the system must know the locale.
locale:
	@if ! locale -a | grep -qi '^ja_JP.utf-\?8$$'; then \
		command -v localedef >/dev/null && [ -e /usr/share/i18n/locales/ja_JP ] || { \
			$(AS_ROOT) apt-get update -qq; \
			$(AS_ROOT) DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends locales >/dev/null; \
		}; \
		$(AS_ROOT) localedef -i ja_JP -f UTF-8 ja_JP.UTF-8; \
	fi

oldest-newest:
	@tests/servers.sh $(SERVERS) 12 18

caches:
	@tests/caches.sh $(SERVERS)

all-majors:
	@tests/servers.sh $(SERVERS) 12 13 14 15 16 17 18

# The job libraries whose own numbers the queue tests compare with.
libraries:
	@tests/queues/libraries.sh $(SERVERS)/libraries

cargo:
	@command -v cargo >/dev/null || { \
		echo "Rust is missing: install it with rustup, or: apt-get install cargo (1.95 or newer)"; exit 1; }
