#!/bin/sh
# Writes the reward where the harness looks for it.
if [ "$(cat /answer.txt 2>/dev/null)" = "home 21" ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
