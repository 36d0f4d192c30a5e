#!/bin/sh
# One line for each test, as the harness reads them.
for test in "$TEST_DIR"/test_*.sh; do
    if sh "$test" >/dev/null 2>&1; then verdict=PASSED; else verdict=FAILED; fi
    echo "$verdict $(basename "$test" .sh)"
done
