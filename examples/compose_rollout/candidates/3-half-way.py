import sys

from client import orders

total = 0
for order in orders():
    if order["customer"] == sys.argv[1]:
        total += order["cents"] if order["kind"] == "sale" else -order["cents"]
print(f"{total / 100:.2f}")
