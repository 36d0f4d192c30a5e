#!/bin/sh
# The most visited page of all days.
awk -F, 'NR > 1 { sum[$2] += $3 } END { for (page in sum) if (sum[page] > most) { most = sum[page]; best = page } print best, most }' \
    "$RECORDS" >/answer.txt
