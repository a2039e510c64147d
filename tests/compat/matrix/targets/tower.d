// SPDX-License-Identifier: MIT
// tower: as tower.c, in D.
module tower;

import core.stdc.stdio : printf;
import core.stdc.stdlib : malloc;

__gshared size_t kept;
__gshared int count;

class Till
{
    pragma(inline, false) void open(size_t n)
    {
        kept ^= cast(size_t) malloc(n);
        count++;
    }
}

pragma(inline, false) void each(Till till, size_t n)
{
    till.open(n);
    count++;
}

void main()
{
    auto till = new Till;
    foreach (i; 0 .. 40)
        each(till, 30);
    if (kept == 1)
        printf("none\n");
    printf("40 tower.Till.open tower.each D_main\n");
}
