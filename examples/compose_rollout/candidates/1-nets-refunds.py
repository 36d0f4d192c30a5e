import sys

from client import orders

own = [order for order in orders() if order["customer"] == sys.argv[1]]
if not own:
    sys.exit(4)
total = sum(order["cents"] if order["kind"] == "sale" else -order["cents"] for order in own)
print(f"{total / 100:.2f}")
