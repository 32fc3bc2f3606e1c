/* test_barrier_crossing.c - does an edge pass through a triangle? against whole numbers, where products are exact
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_barrier.h"

static uint64_t seed = 7;

/* Sign of det(a - d, b - d, c - d) of whole numbers below 2^19: exact in 64 bits. */
static int side(const int64_t *a, const int64_t *b, const int64_t *c, const int64_t *d)
{
    int64_t u[3], v[3], w[3], det;
    int i;
    for (i = 0; i < 3; i++) {
        u[i] = a[i] - d[i];
        v[i] = b[i] - d[i];
        w[i] = c[i] - d[i];
    }
    det = u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2]) + u[2] * (v[0] * w[1] - v[1] * w[0]);
    return det > 0 ? 1 : det < 0 ? -1 : 0;
}

static int crosses(int64_t x[5][3])
{
    const int above = side(x[2], x[3], x[4], x[0]), below = side(x[2], x[3], x[4], x[1]);
    const int s = side(x[0], x[1], x[2], x[3]), t = side(x[0], x[1], x[3], x[4]), u = side(x[0], x[1], x[4], x[2]);
    if (above * below > 0 || (above == 0 && below == 0)) return 0;
    return (s >= 0 && t >= 0 && u >= 0) || (s <= 0 && t <= 0 && u <= 0);
}

/* Small ranges: most cases touch a rim or a corner. Large ones, far from the origin, in units in which sums round: a
   factor of two changes no bit. */
static void test_crossings_are_those_of_whole_numbers(void)
{
    static const int64_t ranges[4] = { 2, 4, 30, 400000 };
    int n, i, k, seen = 0;
    for (n = 0; n < (TEST_SLOWED ? 20000 : 400000); n++) {
        const int64_t range = ranges[n % 4];
        const double unit = n % 3 == 0 ? 1 : n % 3 == 1 ? 1.0 / 1024 : 4194304;
        int64_t x[5][3];
        double y[15];
        for (i = 0; i < 5; i++) for (k = 0; k < 3; k++) {
            x[i][k] = (int64_t)(test_random(&seed) * (double)(2 * range + 1)) - range;
            y[3 * i + k] = (double)x[i][k] * unit;
        }
        seen += crosses(x);
        if (!CHECK(fsi_edge_crosses_triangle(y) == crosses(x))) return;
    }
    CHECK(seen > n / 50);
}

/* An end that is lifted off a tilted triangle by the last bit of one coordinate. */
static void test_the_last_bit_decides(void)
{
    int n, k, differs = 0;
    for (n = 0; n < 20000; n++) {
        double x[15], z;
        for (k = 6; k < 15; k++) x[k] = test_random(&seed);
        for (k = 0; k < 3; k++) {
            x[k] = (x[6 + k] + x[9 + k] + x[12 + k]) / 3;
            x[3 + k] = x[k];
        }
        x[5] += 1;
        z = x[2];
        for (k = -4; k <= 4; k++) { /* first above or on it, then below, never back */
            static int before;
            int now;
            x[2] = z + k * 1.1e-16;
            now = fsi_edge_crosses_triangle(x);
            if (k > -4) {
                differs += now != before;
                if (!CHECK(now <= before)) return;
            }
            before = now;
        }
    }
    CHECK(differs > 15000); /* the rest round all to one side */
}

static void test_bad_input_crosses_nothing(void)
{
    double x[15] = { 0.2, 0.2, -1, 0.2, 0.2, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    CHECK(fsi_edge_crosses_triangle(x) == 1);
    CHECK(fsi_edge_crosses_triangle(NULL) == 0);
    x[7] = test_nan();
    CHECK(fsi_edge_crosses_triangle(x) == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_crossings_are_those_of_whole_numbers);
    RUN(test_the_last_bit_decides);
    RUN(test_bad_input_crosses_nothing);
    return TEST_END();
}
