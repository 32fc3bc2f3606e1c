/* test_wcsph_forcing.c - the contact systems of direct forcing by themselves: against dense systems, and what they conserve.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_wcsph.h"
#include "kit/test_meshes.h"

enum { MOST = 64 };

/* One body and its contacts. The body is not at rest: predicted velocities are relative to it anyhow. */
typedef struct pile {
    fsi_wcsph_contact c[MOST];
    double impulse[3 * MOST], dv[6], mass;
    fsi_mat3 inertia;
    int count, used;
} pile;

static double at(fsi_vec3 v, int k) { return (double)(k == 0 ? v.x : k == 1 ? v.y : v.z); }
static double *impulse_of(pile *p, int i) { return p->impulse + 3 * i; }

static void cross(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static void arm_of(const pile *p, int i, double *r) { int k; for (k = 0; k < 3; k++) r[k] = at(p->c[i].arm, k); }

static double normal_part(pile *p, int i)
{
    int k;
    double n = 0;
    for (k = 0; k < 3; k++) n += impulse_of(p, i)[k] * at(p->c[i].normal, k);
    return n;
}

/* |impulse - its normal part| */
static double tangential_part(pile *p, int i)
{
    int k;
    double sum = 0, n = normal_part(p, i);
    for (k = 0; k < 3; k++) {
        double t = impulse_of(p, i)[k] - n * at(p->c[i].normal, k);
        sum += t * t;
    }
    return sqrt(sum);
}

/* Random contacts all around a body of mass 1 to 2; flat: in the plane. `share`: mass of a particle. */
static void make_pile(pile *p, int count, double slip, double share, int flat, uint64_t *random)
{
    double b[9];
    int i, j, k;
    memset(p, 0, sizeof *p);
    p->count = count;
    p->mass = (double)(fsi_real)(1 + test_random(random));
    for (k = 0; k < 9; k++) b[k] = 2 * test_random(random) - 1;
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 3; j++) {
            double sum = i == j ? 0.05 : 0;
            for (k = 0; k < 3; k++) sum += 0.1 * b[3 * i + k] * b[3 * j + k];
            if (flat && i != j) sum = 0;
            p->inertia.m[3 * i + j] = (fsi_real)sum;
        }
    }
    for (i = 0; i < count; i++) {
        fsi_wcsph_contact *c = p->c + i;
        const int dim = flat ? 2 : 3;
        c->normal = fsi_v3_unit(random_vector(random, dim));
        c->arm = fsi_v3_madd(fsi_v3_scale(c->normal, (fsi_real)0.5), (fsi_real)0.2, random_vector(random, dim));
        c->predicted = fsi_v3_scale(random_vector(random, dim), 2);
        if (fsi_v3_dot(c->predicted, c->normal) > 0) c->predicted = fsi_v3_scale(c->predicted, -1);
        c->slip = (fsi_real)slip;
        c->mass = (fsi_real)(share * (1 + test_random(random)));
    }
}

static fsi_status solve(pile *p, fsi_wcsph_slip mode, fsi_wcsph_solver solver, int passes)
{
    return fsi_wcsph_solve_contacts(p->c, p->count, (fsi_real)p->mass, p->inertia, mode, solver, passes, p->impulse, p->dv, &p->used);
}

/* What the velocity at the contact is to become, less what was predicted (direct_forcing.md 4). */
static void wanted_change(const fsi_wcsph_contact *c, double *b)
{
    double un = 0;
    int k;
    for (k = 0; k < 3; k++) un += at(c->predicted, k) * at(c->normal, k);
    for (k = 0; k < 3; k++) b[k] = (double)c->slip * (at(c->predicted, k) - un * at(c->normal, k)) + (double)c->rebound * at(c->normal, k) - at(c->predicted, k);
}

/* The share of the body's change that a contact passes on: E, or C = n n^T + (1 - e_t)(E - n n^T). */
static double passed_on(const fsi_wcsph_contact *c, fsi_wcsph_slip mode, int j, int k)
{
    double n = at(c->normal, j) * at(c->normal, k), e = j == k;
    return mode == FSI_WCSPH_SLIP_PAPER ? e : n + (1 - (double)c->slip) * (e - n);
}

/* u(x) = dv + dw x r as a 3 x 6 matrix: column k. */
static void body_column(const double *r, int k, double *u)
{
    double axis[3] = { 0, 0, 0 };
    axis[k % 3] = 1;
    if (k < 3) memcpy(u, axis, sizeof axis);
    else cross(axis, r, u);
}

static int is_active(const int *active, int i) { return !active || active[i]; }

/* a x = b in place by elimination with pivoting, n unknowns; b becomes x. */
static void eliminate(double *a, double *b, int n)
{
    int i, j, k;
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        for (j = 0; j < n; j++) {
            double s = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = s;
        }
        { double s = b[k]; b[k] = b[best]; b[best] = s; }
        for (i = 0; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            if (i == k) continue;
            for (j = k; j < n; j++) a[i * n + j] -= f * a[k * n + j];
            b[i] -= f * b[k];
        }
    }
    for (i = 0; i < n; i++) b[i] /= a[i * n + i];
}

/* Every impulse as an unknown, and the body's change: F_i = m_i (b_i + C_i (dv + dw x r_i)), M dv = - sum F_i, I dw = - sum r_i x F_i.
   No elimination by hand: 3 n + 6 equations as they stand. Contacts that are not active have no impulse. */
static double *dense(const pile *p, fsi_wcsph_slip mode, const int *active)
{
    const int n = 3 * p->count + 6;
    double *a = (double *)calloc((size_t)(n * n), sizeof *a), *x = (double *)calloc((size_t)n, sizeof *x);
    int i, j, k, col;
    for (i = 0; i < p->count; i++) {
        double b[3], r[3], u[3];
        arm_of(p, i, r);
        wanted_change(p->c + i, b);
        for (j = 0; j < 3; j++) {
            const int row = 3 * i + j;
            a[row * n + row] = 1;
            if (!is_active(active, i)) continue;
            x[row] = (double)p->c[i].mass * b[j];
            for (col = 0; col < 6; col++) {
                body_column(r, col, u);
                for (k = 0; k < 3; k++) a[row * n + n - 6 + col] -= (double)p->c[i].mass * passed_on(p->c + i, mode, j, k) * u[k];
            }
        }
        for (j = 0; j < 6; j++) {
            body_column(r, j, u);
            for (k = 0; k < 3; k++) a[(n - 6 + j) * n + 3 * i + k] = u[k];
        }
    }
    for (j = 0; j < 3; j++) {
        a[(n - 6 + j) * n + n - 6 + j] = p->mass;
        for (k = 0; k < 3; k++) a[(n - 3 + j) * n + n - 3 + k] = (double)p->inertia.m[3 * j + k];
    }
    eliminate(a, x, n);
    free(a);
    return x;
}

/* Momentum that is made or lost by the impulses, largest component over the sum of sizes: linear, angular about the body's centre. */
static void exchange_errors(pile *p, double *linear, double *angular)
{
    double sum[3], turn[3] = { 0, 0, 0 }, size = 1e-300, spin = 1e-300;
    int i, k;
    for (k = 0; k < 3; k++) {
        sum[k] = p->mass * p->dv[k];
        for (i = 0; i < 3; i++) turn[k] += (double)p->inertia.m[3 * k + i] * p->dv[3 + i];
    }
    for (i = 0; i < p->count; i++) {
        double r[3], t[3];
        arm_of(p, i, r);
        cross(r, impulse_of(p, i), t);
        for (k = 0; k < 3; k++) {
            sum[k] += impulse_of(p, i)[k];
            turn[k] += t[k];
            size += fabs(impulse_of(p, i)[k]);
            spin += fabs(t[k]);
        }
    }
    for (*linear = *angular = k = 0; k < 3; k++) {
        *linear = fmax(*linear, fabs(sum[k]) / size);
        *angular = fmax(*angular, fabs(turn[k]) / spin);
    }
}

/* Smallest pivot of a Cholesky factorisation over the largest entry, or -1 where one is not positive. */
static double smallest_pivot(const double *matrix)
{
    double a[36], least = HUGE_VAL, most = 0;
    int i, j, k;
    memcpy(a, matrix, sizeof a);
    for (k = 0; k < 36; k++) most = fmax(most, fabs(a[k]));
    for (j = 0; j < 6; j++) {
        for (k = 0; k < j; k++) a[7 * j] -= a[6 * j + k] * a[6 * j + k];
        if (!(a[7 * j] > 0)) return -1;
        least = fmin(least, a[7 * j]);
        a[7 * j] = sqrt(a[7 * j]);
        for (i = j + 1; i < 6; i++) {
            for (k = 0; k < j; k++) a[6 * i + j] -= a[6 * i + k] * a[6 * j + k];
            a[6 * i + j] /= a[7 * j];
        }
    }
    return least / most;
}

static double asymmetry(const double *a)
{
    double worst = 0, most = 0;
    int i, j;
    for (i = 0; i < 6; i++) {
        for (j = 0; j < 6; j++) {
            worst = fmax(worst, fabs(a[6 * i + j] - a[6 * j + i]));
            most = fmax(most, fabs(a[6 * i + j]));
        }
    }
    return worst / most;
}

/* ---- the system of one body (A1 to A3) ------------------------------------------------------------------------- */

static void test_the_system_is_symmetric_and_positive(void)
{
    static const double slip[3] = { 0, 0.5, 1 };
    uint64_t random = 1;
    int trial, k, mode;
    for (trial = 0; trial < 150; trial++) {
        pile p;
        make_pile(&p, 40, slip[trial % 3], 0.05, 0, &random);
        for (mode = 0; mode < 2; mode++) {
            double a[36], b[6];
            fsi_wcsph_contact_system(p.c, p.count, (fsi_real)p.mass, p.inertia, mode ? FSI_WCSPH_SLIP_PAPER : FSI_WCSPH_SLIP_CONSISTENT, a, b);
            CHECK(asymmetry(a) <= 1e-15);
            CHECK(smallest_pivot(a) > 1e-4);
            for (k = 0; k < 6; k++) CHECK(fsi_is_finite(b[k]));
        }
    }
}

/* The 6 x 6 system is 3 n + 6 equations with the impulses taken out: both give the same impulses. */
static void test_impulses_are_those_of_the_whole_system(void)
{
    uint64_t random = 2;
    int trial, mode, i;
    for (trial = 0; trial < 40; trial++) {
        for (mode = 0; mode < 2; mode++) {
            const fsi_wcsph_slip how = mode ? FSI_WCSPH_SLIP_PAPER : FSI_WCSPH_SLIP_CONSISTENT;
            double a[36], b[6], *x, size = 0;
            pile p;
            make_pile(&p, 1 + trial, 0.25 * (trial % 5), 0.05, trial & 1, &random);
            for (i = 0; i < p.count; i += 3) p.c[i].rebound = (fsi_real)(0.1 * (i % 4));
            x = dense(&p, how, NULL);
            fsi_wcsph_contact_system(p.c, p.count, (fsi_real)p.mass, p.inertia, how, a, b);
            eliminate(a, b, 6);
            for (i = 0; i < 6; i++) size = fmax(size, fabs(b[i]));
            for (i = 0; i < 6; i++) CHECK_NEAR(b[i], x[3 * p.count + i], TOL(1e-11, 1e-6) * size);
            free(x);
        }
    }
}

/* The paper's (18) as printed: blocks (2, 1), (2, 2) and the second right side transposed. It must go on failing, or the guard guards
   nothing; the header's matrix must not be it. */
static void printed_system(const pile *p, double *a, double *b)
{
    int i, j, k, l;
    memset(a, 0, 36 * sizeof *a);
    memset(b, 0, 6 * sizeof *b);
    for (i = 0; i < 3; i++) {
        a[7 * i] = p->mass;
        for (k = 0; k < 3; k++) a[6 * (3 + i) + 3 + k] = (double)p->inertia.m[3 * i + k];
    }
    for (i = 0; i < p->count; i++) {
        double r[3], rt[9], v[3], m = (double)p->c[i].mass;
        arm_of(p, i, r);
        wanted_change(p->c + i, v);
        rt[0] = rt[4] = rt[8] = 0; /* R^T: R a = r x a */
        rt[1] = r[2], rt[2] = -r[1], rt[3] = -r[2], rt[5] = r[0], rt[6] = r[1], rt[7] = -r[0];
        for (j = 0; j < 3; j++) {
            a[7 * j] += m;
            b[j] -= m * v[j];
            for (k = 0; k < 3; k++) {
                a[6 * j + 3 + k] += m * rt[3 * j + k];
                a[6 * (3 + j) + k] += m * rt[3 * j + k];
                b[3 + j] -= m * rt[3 * j + k] * v[k];
                for (l = 0; l < 3; l++) a[6 * (3 + j) + 3 + k] += m * rt[3 * j + l] * rt[3 * l + k];
            }
        }
    }
}

static void test_the_printed_system_is_wrong(void)
{
    uint64_t random = 3;
    int trial, i, k, positive = 0;
    double worst = 0;
    for (trial = 0; trial < 50; trial++) {
        double a[36], b[6], linear, angular;
        pile p;
        make_pile(&p, 40, 0, 0.05, 0, &random);
        printed_system(&p, a, b);
        CHECK(asymmetry(a) > 1e-3);
        positive += asymmetry(a) < 1e-9 && smallest_pivot(a) > 0;
        eliminate(a, b, 6);
        for (k = 0; k < 6; k++) p.dv[k] = b[k];
        for (i = 0; i < p.count; i++) {
            double r[3], t[3], v[3];
            arm_of(&p, i, r);
            cross(b + 3, r, t);
            wanted_change(p.c + i, v);
            for (k = 0; k < 3; k++) impulse_of(&p, i)[k] = (double)p.c[i].mass * (v[k] + b[k] + t[k]);
        }
        exchange_errors(&p, &linear, &angular);
        worst = fmax(worst, angular);
    }
    CHECK(positive == 0);
    CHECK(worst > 1e-3);
}

/* Every solver, both forms: what the particles get the body loses, about the same points. */
static void test_every_solver_keeps_both_momenta(void)
{
    static const fsi_wcsph_solver solver[4] = { FSI_WCSPH_GLOBAL, FSI_WCSPH_LOCAL, FSI_WCSPH_LOCAL_SPLIT, FSI_WCSPH_PGS };
    uint64_t random = 4;
    int trial, k, mode;
    for (trial = 0; trial < 60; trial++) {
        for (k = 0; k < 4; k++) {
            for (mode = 0; mode < 2; mode++) {
                double linear, angular;
                pile p;
                make_pile(&p, 1 + trial, 0.25 * (trial % 5), trial % 2 ? 0.02 : 0.5, trial % 3 == 0, &random);
                CHECK(solve(&p, mode ? FSI_WCSPH_SLIP_PAPER : FSI_WCSPH_SLIP_CONSISTENT, solver[k], 20) == FSI_OK);
                exchange_errors(&p, &linear, &angular);
                CHECK_NEAR(linear, 0, 1e-12);
                CHECK_NEAR(angular, 0, TOL(1e-12, 1e-6)); /* the inverse of the inertia is an fsi_mat3 */
            }
        }
    }
}

/* Relative normal velocity after the impulses, of contact i. */
static double normal_speed(pile *p, int i)
{
    double r[3], t[3], sum = 0;
    int k;
    arm_of(p, i, r);
    cross(p->dv + 3, r, t);
    for (k = 0; k < 3; k++) sum += (at(p->c[i].predicted, k) + impulse_of(p, i)[k] / (double)p->c[i].mass - p->dv[k] - t[k]) * at(p->c[i].normal, k);
    return sum;
}

/* A2, and 5.2: where all contacts press, u.n is what was asked for; where some would pull, they are let go, and the rest is met. */
static void test_what_presses_meets_its_condition(void)
{
    uint64_t random = 5;
    int trial, i, released = 0, whole = 0;
    for (trial = 0; trial < 200; trial++) {
        int active[MOST], left = 0;
        double *x, size = 0;
        pile p;
        make_pile(&p, 2 + trial % 40, 0.25 * (trial % 5), trial % 2 ? 0.02 : 0.5, 0, &random);
        for (i = 0; i < p.count; i++) p.c[i].rebound = (fsi_real)(trial % 7 == 0 ? 0.2 : 0);
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 16) == FSI_OK);
        CHECK(p.used >= 1 && p.used <= 16);
        for (i = 0; i < p.count; i++) {
            const double *f = impulse_of(&p, i);
            active[i] = f[0] != 0 || f[1] != 0 || f[2] != 0;
            left += active[i];
            size = fmax(size, fabs(f[0]) + fabs(f[1]) + fabs(f[2]));
        }
        for (i = 0; i < p.count; i++) {
            if (!active[i]) continue;
            CHECK_NEAR(normal_speed(&p, i), (double)p.c[i].rebound, TOL(1e-12, 1e-6));
            CHECK(normal_part(&p, i) >= -1e-8 * size);
        }
        x = dense(&p, FSI_WCSPH_SLIP_CONSISTENT, active);
        for (i = 0; i < 3 * p.count; i++) CHECK_NEAR(p.impulse[i], x[i], TOL(1e-10, 1e-6) * size);
        free(x);
        whole += left == p.count;
        released += p.count - left;
    }
    CHECK(whole > 20 && released > 20); /* both kinds occurred */
}

/* A3, and what the paper's form does: its tangential velocity is tied to the prediction, so that a body that is slowed drags. */
static void test_full_slip_gives_no_tangential_impulse(void)
{
    uint64_t random = 6;
    int trial, i;
    double paper = 0;
    for (trial = 0; trial < 60; trial++) {
        pile p;
        make_pile(&p, 30, 1, 0.05, 0, &random);
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4) == FSI_OK);
        for (i = 0; i < p.count; i++) CHECK_NEAR(tangential_part(&p, i), 0, TOL(1e-15, 1e-6) * fabs(normal_part(&p, i)));
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_PGS, 50) == FSI_OK);
        for (i = 0; i < p.count; i++) CHECK_NEAR(tangential_part(&p, i), 0, TOL(1e-16, 1e-7)); /* of impulses of 0.1: what is added up along n */
        CHECK(solve(&p, FSI_WCSPH_SLIP_PAPER, FSI_WCSPH_GLOBAL, 4) == FSI_OK);
        for (i = 0; i < p.count; i++) paper = fmax(paper, tangential_part(&p, i) / (double)p.c[i].mass);
    }
    CHECK(paper > 0.1);
}

/* ---- local and global (A5) -------------------------------------------------------------------------------------- */

/* k particles of mass m = 0.05 at speed 1 meet a wall of mass 1 head on. All at once they leave -k m/(1 + k m); each for itself, the sum
   -k m/(1 + m); with the mass shared out it is the first again. */
static void test_local_impulses_overshoot_and_split_ones_do_not(void)
{
    static const fsi_wcsph_solver solver[4] = { FSI_WCSPH_GLOBAL, FSI_WCSPH_LOCAL, FSI_WCSPH_LOCAL_SPLIT, FSI_WCSPH_PGS };
    const double m = (double)(fsi_real)0.05;
    int k, i, how;
    for (k = 1; k <= MOST; k *= 2) {
        const double want[4] = { -k * m / (1 + k * m), -k * m / (1 + m), -k * m / (1 + k * m), -k * m / (1 + k * m) };
        for (how = 0; how < 4; how++) {
            pile p;
            memset(&p, 0, sizeof p);
            p.count = k;
            p.mass = 1;
            p.inertia = fsi_m3_identity();
            for (i = 0; i < k; i++) {
                p.c[i].normal = v3(0, 0, 1);
                p.c[i].predicted = v3(0, 0, -1);
                p.c[i].mass = (fsi_real)0.05;
            }
            CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, solver[how], how == 3 ? 400 : 4) == FSI_OK);
            CHECK_NEAR(p.dv[2], want[how], how == 3 ? 1e-5 : 1e-12);
            CHECK(p.dv[0] == 0 && p.dv[5] == 0);
        }
    }
}

/* Off-centre contacts too: what is split never leaves more energy than there was. */
static void test_split_impulses_never_make_energy(void)
{
    uint64_t random = 7;
    int trial, i, k, grew = 0;
    for (trial = 0; trial < 200; trial++) {
        double change[2];
        pile p;
        make_pile(&p, 60, 0, 0.5, 0, &random); /* 45 of liquid on 1.5 of body, all from above */
        for (i = 0; i < p.count; i++) {
            if (p.c[i].normal.z < 0) p.c[i].normal.z = -p.c[i].normal.z, p.c[i].arm.z = -p.c[i].arm.z;
            p.c[i].predicted = fsi_v3_scale(p.c[i].normal, (fsi_real)(-1 - test_random(&random)));
        }
        for (k = 0; k < 2; k++) {
            double e = 0;
            int j;
            CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, k ? FSI_WCSPH_LOCAL : FSI_WCSPH_LOCAL_SPLIT, 4) == FSI_OK);
            for (j = 0; j < 3; j++) {
                e += 0.5 * p.mass * p.dv[j] * p.dv[j];
                for (i = 0; i < 3; i++) e += 0.5 * p.dv[3 + j] * (double)p.inertia.m[3 * j + i] * p.dv[3 + i];
            }
            for (i = 0; i < p.count; i++) {
                for (j = 0; j < 3; j++) {
                    double u = at(p.c[i].predicted, j), f = impulse_of(&p, i)[j] / (double)p.c[i].mass;
                    e += 0.5 * (double)p.c[i].mass * ((u + f) * (u + f) - u * u);
                }
            }
            change[k] = e; /* in the frame of the body */
        }
        CHECK(change[0] <= 1e-12);
        grew += change[1] > 0;
    }
    CHECK(grew > 100); /* and the paper's local form does */
}

/* ---- projected Gauss-Seidel (A6) -------------------------------------------------------------------------------- */

/* With enough sweeps no contact pulls, none approaches faster than asked, and what presses has come to rest: w >= 0, f >= 0, w f = 0. */
static void test_sweeps_solve_the_complementarity(void)
{
    uint64_t random = 8;
    int trial, i, pressing = 0, free_ones = 0;
    for (trial = 0; trial < 60; trial++) {
        pile p;
        make_pile(&p, 2 + trial % 50, 1, trial % 2 ? 0.02 : 0.3, 0, &random);
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_PGS, 20000) == FSI_OK);
        for (i = 0; i < p.count; i++) {
            double f = normal_part(&p, i) / (double)p.c[i].mass, w = normal_speed(&p, i) - (double)p.c[i].rebound;
            CHECK(f >= -1e-12);
            CHECK(w >= -1e-3);
            CHECK_NEAR(f > 1e-2 ? w : 0, 0, 1e-3);
            pressing += f > 1e-2;
            free_ones += w > 1e-2;
        }
    }
    CHECK(pressing > 100 && free_ones > 20);
}

/* Sticking contacts: tangential impulses stay within the normal one's size, the cone c = 1. */
static void test_sweeps_stay_in_their_cones(void)
{
    uint64_t random = 9;
    int trial, i;
    for (trial = 0; trial < 60; trial++) {
        pile p;
        make_pile(&p, 2 + trial % 50, 0.25 * (trial % 4), 0.05, 0, &random);
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_PGS, 50) == FSI_OK);
        for (i = 0; i < p.count; i++) CHECK(tangential_part(&p, i) <= normal_part(&p, i) * (1 + TOL(1e-12, 1e-6)) + 1e-15);
    }
}

/* ---- one-way, and refusals -------------------------------------------------------------------------------------- */

/* A body that does not move: v += b, the full vector (direct_forcing.md 8). */
static void test_a_body_that_does_not_move_reflects(void)
{
    static const fsi_wcsph_solver solver[3] = { FSI_WCSPH_GLOBAL, FSI_WCSPH_LOCAL, FSI_WCSPH_LOCAL_SPLIT };
    uint64_t random = 10;
    int trial, i, k;
    for (trial = 0; trial < 30; trial++) {
        pile p;
        make_pile(&p, 20, 0.1 * (trial % 11), 0.05, 0, &random);
        p.mass = 0;
        memset(&p.inertia, 0, sizeof p.inertia);
        for (i = 0; i < p.count; i++) p.c[i].rebound = (fsi_real)(0.05 * i);
        CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, solver[trial % 3], 4) == FSI_OK);
        for (k = 0; k < 6; k++) CHECK(p.dv[k] == 0);
        for (i = 0; i < p.count; i++) {
            double b[3];
            wanted_change(p.c + i, b);
            for (k = 0; k < 3; k++) CHECK_NEAR(impulse_of(&p, i)[k], (double)p.c[i].mass * b[k], TOL(1e-15, 1e-8));
        }
    }
}

static void test_what_cannot_be_solved_is_refused(void)
{
    uint64_t random = 11;
    pile p;
    make_pile(&p, 5, 0.5, 0.05, 0, &random);
    CHECK(fsi_wcsph_solve_contacts(NULL, 5, (fsi_real)p.mass, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4, p.impulse, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_solve_contacts(p.c, -1, (fsi_real)p.mass, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4, p.impulse, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_solve_contacts(p.c, 5, (fsi_real)p.mass, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4, NULL, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_solve_contacts(p.c, 5, (fsi_real)p.mass, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 0, p.impulse, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_solve_contacts(p.c, 5, (fsi_real)-1, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4, p.impulse, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_solve_contacts(p.c, 5, (fsi_real)p.mass, p.inertia, FSI_WCSPH_SLIP_CONSISTENT, (fsi_wcsph_solver)9, 4, p.impulse, p.dv, NULL) == FSI_ERROR_ARGUMENT);
    p.inertia = fsi_m3_scale(fsi_m3_identity(), -1);
    CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4) == FSI_ERROR_SINGULAR);
    p.inertia = fsi_m3_identity();
    p.count = 0;
    CHECK(solve(&p, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4) == FSI_OK && p.dv[0] == 0 && p.dv[5] == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_the_system_is_symmetric_and_positive);
    RUN(test_impulses_are_those_of_the_whole_system);
    RUN(test_the_printed_system_is_wrong);
    RUN(test_every_solver_keeps_both_momenta);
    RUN(test_what_presses_meets_its_condition);
    RUN(test_full_slip_gives_no_tangential_impulse);
    RUN(test_local_impulses_overshoot_and_split_ones_do_not);
    RUN(test_split_impulses_never_make_energy);
    RUN(test_sweeps_solve_the_complementarity);
    RUN(test_sweeps_stay_in_their_cones);
    RUN(test_a_body_that_does_not_move_reflects);
    RUN(test_what_cannot_be_solved_is_refused);
    return TEST_END();
}
