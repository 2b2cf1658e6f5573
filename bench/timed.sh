#!/bin/sh
# Runs a test program and prints the time of each test. Stable Rust's test library allows this only with RUSTC_BOOTSTRAP.
RUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --report-time
