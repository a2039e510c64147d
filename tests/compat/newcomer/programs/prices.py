# SPDX-License-Identifier: MIT
"""Means of prices by shop.  Reading needs little, the answer is small; but
sort_by_price holds every row twice, and its keys: the peak."""

import random


def read_rows(count):
    rng = random.Random(1)
    for i in range(count):
        yield f"shop {i % 40}", f"article {i}", rng.randrange(1, 100000) / 100


def sort_by_price(rows):
    keyed = [(price, f"{shop}: {article} at {price}")
             for shop, article, price in rows]
    return [text for _, text in sorted(keyed)]


def mean_by_shop(rows):
    sums = {}
    for shop, _, price in rows:
        total, count = sums.get(shop, (0, 0))
        sums[shop] = total + price, count + 1
    return {shop: total / count for shop, (total, count) in sums.items()}


def main():
    count = 200000
    means = mean_by_shop(read_rows(count))
    cheapest = sort_by_price(read_rows(count))[0]
    means = mean_by_shop(read_rows(count))
    print(len(means), "shops; cheapest:", cheapest)


main()
