#!/bin/sh
# Runs a test program that prints the time of each test, for which the library of tests asks for a nightly compiler.
RUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --report-time
