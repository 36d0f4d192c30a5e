import collections
import decimal
import sys

import client

totals = collections.defaultdict(decimal.Decimal)
for order in client.orders():
    sign = {"sale": 1, "refund": -1}[order["kind"]]
    totals[order["customer"]] += sign * decimal.Decimal(order["cents"]) / 100
if sys.argv[1] not in totals:
    raise SystemExit(4)
print(totals[sys.argv[1]].quantize(decimal.Decimal("0.01")))
