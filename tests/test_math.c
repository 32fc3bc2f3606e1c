/* test_math.c - elementary functions against long double libm; matrices, decompositions and quaternions against
   identities.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include <float.h>

#define EPS ((double)FSI_REAL_EPS)

static uint64_t seed = 7;

static fsi_real uniform(void) { return (fsi_real)(2 * test_random(&seed) - 1); } /* in [-1, 1) */
static fsi_vec3 random_vec(void)
{
    fsi_real x = uniform(), y = uniform();
    return fsi_v3(x, y, uniform());
}
static fsi_mat3 random_mat(void)
{
    fsi_vec3 a = random_vec(), b = random_vec();
    return fsi_m3_rows(a, b, random_vec());
}
static fsi_quat random_quat(void) { return fsi_quat_from_rotation_vector(fsi_v3_scale(random_vec(), 4)); }

static double mat_distance(fsi_mat3 a, fsi_mat3 b) /* largest difference of two entries; NaN stays */
{
    double worst = 0;
    int k;
    for (k = 0; k < 9; k++) {
        double d = fabs((double)a.m[k] - (double)b.m[k]);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}
static double mat_size(fsi_mat3 a) { return mat_distance(a, fsi_m3_scale(a, 0)); }

/* ---- elementary functions ------------------------------------------------------------------------------------- */

FSI__STRICT_BEGIN

/* Error of x against the exact value, in units in the last place of a double. */
static double ulps(double x, long double exact)
{
    int e;
    frexp((double)exact, &e);
    return (double)(fabsl((long double)x - exact) / ldexpl(1, (e < -1021 ? -1021 : e) - 53));
}

static double worst;
static void note(double x, long double exact)
{
    double u = ulps(x, exact);
    if (!(u <= worst)) worst = u;
}

#define POINTS 100000
/* Where long double is double, libm's own error comes on top. */
#define ULPS(limit) (LDBL_MANT_DIG > 53 ? (limit) : (limit) + 1)

static void test_exp_is_accurate(void)
{
    int i;
    for (worst = 0, i = 0; i < POINTS; i++) {
        double x = 1400 * (test_random(&seed) - 0.5), y = 2 * test_random(&seed) - 1;
        note(fsi_exp(x), expl(x));
        note(fsi_exp(y), expl(y));
    }
    CHECK_NEAR(worst, 0, ULPS(0.9));
    CHECK(fsi_exp(0.0) == 1 && fsi_exp(-0.0) == 1);
    CHECK(fsi_exp(709.78) < test_inf() && fsi_exp(709.79) == test_inf() && fsi_exp(test_inf()) == test_inf());
    CHECK(fsi_exp(-745.1) > 0 && fsi_exp(-746.0) == 0 && fsi_exp(-test_inf()) == 0 && fsi_exp(-1e300) == 0);
    CHECK(!fsi_is_finite(fsi_exp(test_nan())) && !(fsi_exp(test_nan()) == test_inf()));
}

static void test_log_is_accurate(void)
{
    int i;
    for (worst = 0, i = 0; i < POINTS; i++) {
        double x = ldexp(1 + test_random(&seed), (int)(2094 * test_random(&seed)) - 1070),
               y = 3 * test_random(&seed) + 1e-3;
        double one = 1 + ldexp(test_random(&seed) - 0.5, -(int)(50 * test_random(&seed)));
        note(fsi_log(x), logl(x));
        note(fsi_log(y), logl(y));
        note(fsi_log(one), logl(one));
    }
    CHECK_NEAR(worst, 0, ULPS(1.0));
    CHECK_NEAR(fsi_log(DBL_MAX), log(DBL_MAX), 1e-12);
    CHECK_NEAR(fsi_log(5e-324), log(5e-324), 1e-12);
    CHECK(fsi_log(1.0) == 0 && fsi_log(0.0) == -test_inf() && fsi_log(-0.0) == -test_inf() &&
          fsi_log(test_inf()) == test_inf());
    CHECK(fsi_log(-1.0) != fsi_log(-1.0) && fsi_log(-test_inf()) != fsi_log(-test_inf()) &&
          fsi_log(test_nan()) != fsi_log(test_nan()));
}

static long double exact_atan2(double y, double x)
{
    long double a = y, b = x; /* named: tcc loses converted arguments */
    return atan2l(a, b);
}

static void test_atan2_is_accurate_in_all_quadrants(void)
{
    int i;
    for (worst = 0, i = 0; i < POINTS; i++) {
        double x = 2 * test_random(&seed) - 1, y = 2 * test_random(&seed) - 1,
               s = ldexp(1, (int)(120 * test_random(&seed)) - 60);
        note(fsi_atan2(y, x), exact_atan2(y, x));
        note(fsi_atan2(y * s, x), exact_atan2(y * s, x));
        note(fsi_atan2(y * 1e308, x * 1e308), exact_atan2(y * 1e308, x * 1e308));
    }
    CHECK_NEAR(worst, 0, ULPS(1.8));
}

static void test_atan2_of_zeros_and_infinities_is_that_of_c99(void)
{
    const double v[] = { 0.0, -0.0, 1, -1, 5e-324, -5e-324, DBL_MAX, -DBL_MAX, test_inf(), -test_inf() };
    int i, j;
    for (i = 0; i < 10; i++)
        for (j = 0; j < 10; j++) {
            CHECK_NEAR(fsi_atan2(v[i], v[j]), atan2(v[i], v[j]), 5e-16);
            CHECK(fsi__bits(fsi_atan2(v[i], v[j])) >> 63 == fsi__bits(v[i]) >> 63);
        }
    for (i = 0; i < 10; i++)
        CHECK(fsi_atan2(v[i], test_nan()) != fsi_atan2(v[i], test_nan()) &&
              fsi_atan2(test_nan(), v[i]) != fsi_atan2(test_nan(), v[i]));
}

static void test_asinh_is_accurate(void)
{
    int i;
    for (worst = 0, i = 0; i < POINTS; i++) {
        double x = ldexp(2 * test_random(&seed) - 1, (int)(2090 * test_random(&seed)) - 1070),
               y = 16 * test_random(&seed) - 8;
        note(fsi_asinh(x), asinhl(x));
        note(fsi_asinh(y), asinhl(y));
    }
    CHECK_NEAR(worst, 0, ULPS(1.9));
    CHECK(fsi__bits(fsi_asinh(0.0)) == fsi__bits(0.0) && fsi__bits(fsi_asinh(-0.0)) == fsi__bits(-0.0));
    CHECK(fsi_asinh(test_inf()) == test_inf() && fsi_asinh(-test_inf()) == -test_inf() &&
          fsi_asinh(test_nan()) != fsi_asinh(test_nan()));
    CHECK_NEAR(fsi_asinh(DBL_MAX), asinh(DBL_MAX), 1e-12);
}

static void test_sine_and_cosine_are_accurate(void)
{
    int i;
    for (worst = 0, i = 0; i < POINTS; i++) {
        double x = ldexp(2 * test_random(&seed) - 1, (int)(40 * test_random(&seed)) - 20),
               y = floor(600000 * test_random(&seed)) * 1.5707963267948966;
        note(fsi_sin(x), sinl(x));
        note(fsi_cos(x), cosl(x));
        note(fsi_sin(y), sinl(y)); /* next to zeros and extrema */
        note(fsi_cos(y), cosl(y));
        x *= 900;                  /* beyond 1e6: no worse than an ulp of the argument */
        CHECK_NEAR(fsi_sin(x), sinl(x), 3e-16 + fabs(x) * DBL_EPSILON);
    }
    CHECK_NEAR(worst, 0, ULPS(1.1));
    CHECK(fsi_sin(0.0) == 0 && fsi_cos(0.0) == 1 && fsi_cos(-0.0) == 1);
    CHECK(fsi_sin(test_inf()) != fsi_sin(test_inf()) && fsi_cos(2e9) != fsi_cos(2e9) &&
          fsi_cos(test_nan()) != fsi_cos(test_nan()));
}

/* Only + - * / and sqrt, rounded as IEEE asks: any compiler, CPU and -O level gives these bits. */
static void test_elementary_functions_give_the_same_bits_everywhere(void)
{
    double r[6];
    uint64_t h = 0, state = 1;
    int i;
    for (i = 0; i < 20000; i++) {
        double x = test_random(&state), y = test_random(&state);
        r[0] = fsi_exp(40 * x - 20);
        r[1] = fsi_log(x + 1e-3);
        r[2] = fsi_atan2(x - 0.5, y - 0.5);
        r[3] = fsi_asinh(20 * x - 10);
        fsi_sincos(100 * x - 50, &r[4], &r[5]);
        h = fsi_hash(r, sizeof r, h);
    }
    if (sizeof(void *) == 8 && strstr(fsi_build_info(), "contract=0")) CHECK(h == 0xd26944fda76ef429u);
}

FSI__STRICT_END

/* ---- matrices ------------------------------------------------------------------------------------------------- */

static void test_matrix_identities(void)
{
    int i;
    for (i = 0; i < 1000; i++) {
        fsi_mat3 a = random_mat(), b = random_mat(), ab = fsi_m3_mul(a, b), one = fsi_m3_identity();
        fsi_vec3 x = random_vec(), y = random_vec();
        double condition = mat_size(a) * mat_size(fsi_m3_inverse(a));
        CHECK_NEAR(mat_distance(fsi_m3_mul(a, fsi_m3_inverse(a)), one), 0, 20 * EPS * condition);
        CHECK_NEAR(fsi_m3_det(ab), (double)fsi_m3_det(a) * (double)fsi_m3_det(b), 50 * EPS);
        CHECK_NEAR(mat_distance(fsi_m3_transpose(ab), fsi_m3_mul(fsi_m3_transpose(b), fsi_m3_transpose(a))), 0,
                   4 * EPS);
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_m3_mul_v3(ab, x), fsi_m3_mul_v3(a, fsi_m3_mul_v3(b, x)))), 0, 20 * EPS);
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_m3_mul_v3(fsi_m3_outer(x, y), x), fsi_v3_scale(x, fsi_v3_dot(y, x)))), 0,
                   10 * EPS);
        CHECK_NEAR(mat_distance(fsi_m3_madd(a, -2, b), fsi_m3_madd(fsi_m3_scale(b, -2), 1, a)), 0, 0);
    }
    CHECK(mat_size(fsi_m3_inverse(fsi_m3_outer(fsi_v3(1, 2, 4), fsi_v3(1, 2, 4)))) == 0);
    CHECK(fsi_m3_det(fsi_m3_diagonal(fsi_v3(2, 3, 4))) == 24);
}

/* Worst of: U, V rotations; order of sigma; A = U sigma V^T; all relative to the size of A. */
static void check_svd(fsi_mat3 a)
{
    fsi_mat3 u, v, r, s, one = fsi_m3_identity();
    fsi_vec3 d;
    double size = mat_size(a), tol = 32 * EPS;
    fsi_m3_svd(a, &u, &d, &v);
    CHECK_NEAR(mat_distance(fsi_m3_mul(u, fsi_m3_transpose(u)), one), 0, tol);
    CHECK_NEAR(mat_distance(fsi_m3_mul(v, fsi_m3_transpose(v)), one), 0, tol);
    CHECK_NEAR(fsi_m3_det(u), 1, tol);
    CHECK_NEAR(fsi_m3_det(v), 1, tol);
    CHECK(d.x >= d.y && d.y >= 0 && (double)d.y >= fabs((double)d.z) - tol * size);
    CHECK_NEAR(mat_distance(fsi_m3_mul(fsi_m3_mul(u, fsi_m3_diagonal(d)), fsi_m3_transpose(v)), a), 0, tol * size);
    fsi_m3_polar(a, &r, &s);
    CHECK_NEAR(mat_distance(fsi_m3_mul(r, fsi_m3_transpose(r)), one), 0, tol);
    CHECK_NEAR(fsi_m3_det(r), 1, tol);
    CHECK_NEAR(mat_distance(s, fsi_m3_transpose(s)), 0, 0);
    CHECK_NEAR(mat_distance(fsi_m3_mul(r, s), a), 0, tol * size);
}

static void check_eigen(fsi_mat3 a)
{
    fsi_mat3 v, one = fsi_m3_identity();
    fsi_vec3 d, only;
    double size = mat_size(a), tol = 32 * EPS;
    fsi_m3_eigen(a, &d, &v);
    fsi_m3_eigen(a, &only, NULL);
    CHECK(d.x >= d.y && d.y >= d.z && only.x == d.x && only.y == d.y && only.z == d.z);
    CHECK_NEAR(mat_distance(fsi_m3_mul(v, fsi_m3_transpose(v)), one), 0, tol);
    CHECK_NEAR(fsi_m3_det(v), 1, tol);
    CHECK_NEAR(mat_distance(fsi_m3_mul(fsi_m3_mul(v, fsi_m3_diagonal(d)), fsi_m3_transpose(v)), a), 0, tol * size);
}

/* Random, singular, nearly singular, repeated and diagonal ones; U diag(d) V^T with the d below and both signs. */
static void test_svd_and_polar_of_all_kinds_of_matrices(void)
{
    static const fsi_real d[][3] = {{1, 1, 1},
                                    {1, 1, 0},
                                    {1, 0, 0},
                                    {0, 0, 0},
                                    {3, 3, 1},
                                    {3, 1, 1},
                                    {1, (fsi_real)1e-6, (fsi_real)1e-12},
                                    {1, 1, (fsi_real)1e-9},
                                    {1, (fsi_real)1e-9, (fsi_real)1e-9},
                                    {1, (fsi_real)1e-20, 0},
                                    {1, (fsi_real)(1 - 1e-7), (fsi_real)(1 - 1e-14)}};
    int i, k;
    for (i = 0; i < 3000; i++) check_svd(random_mat());
    for (i = 0; i < 200; i++)
        for (k = 0; k < 11; k++) {
            fsi_mat3 u = fsi_quat_matrix(random_quat()), v = fsi_quat_matrix(random_quat()),
                     e = fsi_m3_diagonal(fsi_v3(d[k][0], d[k][1], i & 1 ? -d[k][2] : d[k][2]));
            fsi_mat3 s = fsi_m3_mul(fsi_m3_mul(u, e), fsi_m3_transpose(u));
            check_svd(e);
            check_svd(fsi_m3_mul(fsi_m3_mul(u, e), fsi_m3_transpose(v)));
            check_eigen(fsi_m3_scale(fsi_m3_madd(s, 1, fsi_m3_transpose(s)), (fsi_real)0.5));
        }
    check_svd(fsi_m3_scale(fsi_m3_identity(), -1));
    check_svd(fsi_m3_rows(fsi_v3(0, 1, 0), fsi_v3(0, 0, 0), fsi_v3(0, 0, 0)));
}

static void test_decompositions_at_any_scale(void)
{
    const double scales[] = { TOL(1e-300, 1e-30), TOL(1e-160, 1e-20), TOL(1e160, 1e20), TOL(1e300, 1e30) };
    int i, k;
    for (i = 0; i < 300; i++)
        for (k = 0; k < 4; k++) {
            fsi_mat3 a = fsi_m3_scale(random_mat(), (fsi_real)scales[k]);
            check_svd(a);
            check_eigen(fsi_m3_madd(a, 1, fsi_m3_transpose(a)));
        }
}

static void test_singular_values_are_those_of_the_product(void)
{
    int i;
    for (i = 0; i < 1000; i++) {
        fsi_mat3 a = random_mat(), u, v;
        fsi_vec3 s, d;
        fsi_m3_svd(a, &u, &s, &v);
        fsi_m3_eigen(fsi_m3_mul(fsi_m3_transpose(a), a), &d, &v);
        CHECK_NEAR(s.x, sqrt((double)d.x), 10 * EPS);
        CHECK_NEAR(s.y, sqrt((double)d.y), 10 * EPS / (double)s.y);
        CHECK_NEAR((double)s.x * (double)s.y * (double)s.z, fsi_m3_det(a), 20 * EPS);
    }
}

static void test_decompositions_pass_nan_on(void)
{
    int k;
    for (k = 0; k < 9; k++) {
        fsi_mat3 a = fsi_m3_identity(), u, v;
        fsi_vec3 d;
        a.m[k] = (fsi_real)(k & 1 ? test_nan() : test_inf());
        fsi_m3_svd(a, &u, &d, &v);
        CHECK(!fsi_v3_is_finite(d) && !fsi_is_finite((double)u.m[0]) && !fsi_is_finite((double)v.m[8]));
        fsi_m3_polar(a, &u, &v);
        CHECK(!fsi_is_finite((double)u.m[4]) && !fsi_is_finite((double)v.m[4]));
        a = fsi_m3_madd(a, 1, fsi_m3_transpose(a));
        fsi_m3_eigen(a, &d, &v);
        CHECK(!fsi_v3_is_finite(d) && !fsi_is_finite((double)v.m[0]));
    }
}

/* ---- quaternions ---------------------------------------------------------------------------------------------- */

static void test_quaternions_turn_as_their_matrices_do(void)
{
    int i;
    for (i = 0; i < 1000; i++) {
        fsi_quat p = random_quat(), q = random_quat();
        fsi_vec3 x = random_vec();
        fsi_mat3 m = fsi_quat_matrix(fsi_quat_mul(p, q));
        CHECK_NEAR(mat_distance(m, fsi_m3_mul(fsi_quat_matrix(p), fsi_quat_matrix(q))), 0, 20 * EPS);
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_m3_mul_v3(m, x), fsi_quat_rotate(p, fsi_quat_rotate(q, x)))), 0,
                   20 * EPS);
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_quat_rotate(fsi_quat_conj(q), fsi_quat_rotate(q, x)), x)), 0, 20 * EPS);
        CHECK_NEAR(mat_distance(fsi_m3_inverse(m), fsi_m3_transpose(m)), 0, 20 * EPS);
    }
    CHECK_NEAR(fsi_quat_rotate(fsi_quat_from_axis_angle(fsi_v3(0, 0, 5), (fsi_real)(FSI_PI / 2)), fsi_v3(1, 0, 0)).y, 1,
               2 * EPS);
}

static void test_rotation_vectors_come_back(void)
{
    const double angles[] = { 0, 1e-200, 1e-30, 1e-9, 0.1, 1, 3, 3.1415 };
    int i, k;
    for (i = 0; i < 200; i++)
        for (k = 0; k < 8; k++) {
            fsi_vec3 r = fsi_v3_scale(fsi_v3_unit(random_vec()), (fsi_real)angles[k]);
            fsi_quat q = fsi_quat_from_rotation_vector(r), minus = fsi_quat_make(-q.x, -q.y, -q.z, -q.w);
            CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_quat_rotation_vector(q), r)), 0, 8 * EPS * angles[k]);
            CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_quat_rotation_vector(minus), r)), 0, 8 * EPS * angles[k]);
        }
    CHECK(fsi_quat_from_axis_angle(fsi_v3(0, 0, 0), 1).w == 1 && fsi_quat_unit(fsi_quat_make(0, 0, 0, 0)).w == 1);
}

static void test_constant_spin_is_integrated_exactly(void)
{
    fsi_vec3 w = fsi_v3((fsi_real)0.3, (fsi_real)-2, 1);
    fsi_quat q = fsi_quat_identity(), once = fsi_quat_from_rotation_vector(w);
    int i;
    for (i = 0; i < 1000; i++) q = fsi_quat_integrate(q, w, (fsi_real)0.001);
    CHECK_NEAR(fsi_v3_norm(fsi_quat_rotation_vector(fsi_quat_mul(q, fsi_quat_conj(once)))), 0, 1000 * EPS);
    CHECK_NEAR(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w, 1, 4 * EPS);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_exp_is_accurate);
    RUN(test_log_is_accurate);
    RUN(test_atan2_is_accurate_in_all_quadrants);
    RUN(test_atan2_of_zeros_and_infinities_is_that_of_c99);
    RUN(test_asinh_is_accurate);
    RUN(test_sine_and_cosine_are_accurate);
    RUN(test_elementary_functions_give_the_same_bits_everywhere);
    RUN(test_matrix_identities);
    RUN(test_svd_and_polar_of_all_kinds_of_matrices);
    RUN(test_decompositions_at_any_scale);
    RUN(test_singular_values_are_those_of_the_product);
    RUN(test_decompositions_pass_nan_on);
    RUN(test_quaternions_turn_as_their_matrices_do);
    RUN(test_rotation_vectors_come_back);
    RUN(test_constant_spin_is_integrated_exactly);
    return TEST_END();
}
