/* barrier_reference.h - distances of moving pairs, slowly and exactly: for tests and validation of fsi_barrier.h only.
   SPDX-License-Identifier: MIT

   Include it once for each type: REF_REAL and REF(name) are defined before. When does the distance of a pair that moves
   straight first fall below g? It passes g only where one of these polynomials of time is 0, one for each two points,
   each point and line, and the two planes:
      |r|^2 - g^2,   |e x r|^2 - g^2 |e|^2,   (r.N)^2 - g^2 |N|^2, N = e1 x e2
   Between all their zeros (and those of their derivatives, so that double ones count) one look at the distance
   decides. */

typedef struct REF(poly) { int n; REF_REAL c[7]; } REF(poly);   /* degree, coefficients of t^k */
typedef struct REF(vpoly) { REF(poly) x[3]; } REF(vpoly);

TEST_FN REF(poly) REF(times)(const REF(poly) *a, const REF(poly) *b)
{
    REF(poly) p;
    int i, j;
    p.n = a->n + b->n;
    for (i = 0; i < 7; i++) p.c[i] = 0;
    for (i = 0; i <= a->n; i++) for (j = 0; j <= b->n; j++) p.c[i + j] += a->c[i] * b->c[j];
    return p;
}

TEST_FN REF(poly) REF(plus)(const REF(poly) *a, const REF(poly) *b, REF_REAL s) /* a + s b */
{
    REF(poly) p;
    int i;
    p.n = a->n > b->n ? a->n : b->n;
    for (i = 0; i < 7; i++) p.c[i] = (i <= a->n ? a->c[i] : 0) + (i <= b->n ? s * b->c[i] : 0);
    return p;
}

TEST_FN REF(poly) REF(dot_poly)(const REF(vpoly) *a, const REF(vpoly) *b)
{
    REF(poly) p = REF(times)(&a->x[0], &b->x[0]);
    int k;
    for (k = 1; k < 3; k++) {
        REF(poly) q = REF(times)(&a->x[k], &b->x[k]);
        p = REF(plus)(&p, &q, 1);
    }
    return p;
}

TEST_FN REF(vpoly) REF(cross_poly)(const REF(vpoly) *a, const REF(vpoly) *b)
{
    REF(vpoly) v;
    int k;
    for (k = 0; k < 3; k++) {
        REF(poly)
        p = REF(times)(&a->x[(k + 1) % 3], &b->x[(k + 2) % 3]),
        q = REF(times)(&a->x[(k + 2) % 3], &b->x[(k + 1) % 3]);
        v.x[k] = REF(plus)(&p, &q, -1);
    }
    return v;
}

TEST_FN REF_REAL REF(value)(const REF_REAL *c, int n, REF_REAL t)
{
    REF_REAL v = c[n];
    while (n-- > 0) v = v * t + c[n];
    return v;
}

/* The zero of a function that is monotonic between a and b, where it has unlike signs: Newton's steps, kept inside by
   bisection. */
TEST_FN REF_REAL REF(zero_between)(const REF_REAL *c, int n, REF_REAL a, REF_REAL b, REF_REAL fa)
{
    REF_REAL d[7], t = (a + b) / 2;
    int k, turn;
    for (k = 1; k <= n; k++) d[k - 1] = c[k] * k;
    for (turn = 0; turn < 200; turn++) {
        REF_REAL f = REF(value)(c, n, t), slope = REF(value)(d, n - 1, t), next;
        if (f == 0) return t;
        if ((f > 0) == (fa > 0)) a = t;
        else b = t;
        next = slope != 0 ? t - f / slope : a;
        if (!(next > a && next < b)) next = (a + b) / 2;
        if (next == t || !(next > a && next < b)) return next;
        f = next - t;
        t = next;
        if ((f < 0 ? -f : f) < (t < 0 ? -t : t) * REF_EPS) return t;
    }
    return t;
}

/* All zeros in [0, 1], ascending, and those of the derivative at the end of out; returns how many in all. */
TEST_FN int REF(zeros)(const REF_REAL *c, int n, REF_REAL *out)
{
    REF_REAL d[7], at[16], a = 0, fa, ends[16];
    int k, m = 0, found = 0;
    if (n == 0) return 0;
    for (k = 1; k <= n; k++) d[k - 1] = c[k] * k;
    if (n > 1) m = REF(zeros)(d, n - 1, at);
    for (k = 0, m = m > 7 ? 7 : m; k < m; k++) ends[k] = at[k];
    for (k = 1; k < m; k++) { /* they come in two ascending runs */
        REF_REAL e = ends[k];
        int j = k;
        for (; j > 0 && ends[j - 1] > e; j--) ends[j] = ends[j - 1];
        ends[j] = e;
    }
    ends[m] = 1;
    fa = c[0];
    for (k = 0; k <= m; k++) {
        REF_REAL b = ends[k], fb = REF(value)(c, n, b);
        if ((fa > 0) != (fb > 0)) out[found++] = REF(zero_between)(c, n, a, b, fa);
        a = b;
        fa = fb;
    }
    return found;
}

/* ---- distances -------------------------------------------------------------------------------------------------- */

TEST_FN REF_REAL REF(dot)(const REF_REAL *a, const REF_REAL *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
TEST_FN void REF(sub)(const REF_REAL *a, const REF_REAL *b, REF_REAL *c)
{
    int k;
    for (k = 0; k < 3; k++) c[k] = a[k] - b[k];
}
TEST_FN void REF(cross)(const REF_REAL *a, const REF_REAL *b, REF_REAL *c)
{
    int k;
    for (k = 0; k < 3; k++) c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* The square of the distance of p from the edge ab. */
TEST_FN REF_REAL REF(point_edge)(const REF_REAL *p, const REF_REAL *a, const REF_REAL *b)
{
    REF_REAL e[3], r[3], ee, s;
    int k;
    REF(sub)(b, a, e);
    REF(sub)(p, a, r);
    ee = REF(dot)(e, e);
    s = REF(dot)(e, r);
    s = !(s > 0) ? 0 : s >= ee ? 1 : s / ee;
    for (k = 0; k < 3; k++) r[k] -= s * e[k];
    return REF(dot)(r, r);
}

/* The face of a piece q + s e1 + t e2 (triangle: s + t <= 1): the square of its distance from the origin, or `best`
   where that is less or beside it. */
TEST_FN REF_REAL REF(face)(const REF_REAL *q, const REF_REAL *e1, const REF_REAL *e2, int triangle, REF_REAL best)
{
    REF_REAL n[3], c[3], nn, s, t, h;
    REF(cross)(e1, e2, n);
    nn = REF(dot)(n, n);
    /* nothing but rounding: its edges are as close */
    if (!(nn > REF_EPS * REF_EPS * 1000000 * REF(dot)(e1, e1) * REF(dot)(e2, e2))) return best;
    REF(cross)(q, e2, c);
    s = -REF(dot)(c, n);
    REF(cross)(e1, q, c);
    t = -REF(dot)(c, n);
    if (!(s >= 0 && t >= 0 && (triangle ? s + t <= nn : s <= nn && t <= nn))) return best;
    h = REF(dot)(q, n);
    h = h * h / nn;
    return h < best ? h : best;
}

/* The square of the distance of a pair; x: 3 numbers a point. */
TEST_FN REF_REAL REF(distance2)(fsi_pair kind, const REF_REAL *x)
{
    REF_REAL q[3], e1[3], e2[3], best, d;
    const REF_REAL *a = x, *b = x + 3, *c = x + 6, *e = x + 9;
    int k;
    if (kind == FSI_POINT_POINT) return REF(point_edge)(a, b, b);
    if (kind == FSI_POINT_EDGE) return REF(point_edge)(a, b, c);
    if (kind == FSI_POINT_TRIANGLE) {
        best = REF(point_edge)(a, b, c);
        d = REF(point_edge)(a, c, e);
        best = d < best ? d : best;
        d = REF(point_edge)(a, e, b);
        best = d < best ? d : best;
        REF(sub)(a, b, q);
        REF(sub)(b, c, e1);
        REF(sub)(b, e, e2);
        return REF(face)(q, e1, e2, 1, best);
    }
    best = REF(point_edge)(a, c, e);
    for (k = 0; k < 3; k++) {
        d = k == 0 ? REF(point_edge)(b, c, e) : k == 1 ? REF(point_edge)(c, a, b) : REF(point_edge)(e, a, b);
        best = d < best ? d : best;
    }
    REF(sub)(a, c, q);
    REF(sub)(b, a, e1);
    REF(sub)(c, e, e2);
    return REF(face)(q, e1, e2, 0, best);
}

/* ---- first times ------------------------------------------------------------------------------------------------ */

/* x[p] - x[q] as it moves. */
TEST_FN REF(vpoly) REF(between_points)(const double *x, const double *dx, int p, int q)
{
    REF(vpoly) v;
    int k;
    for (k = 0; k < 3; k++) {
        v.x[k].n = 1;
        v.x[k].c[0] = (REF_REAL)x[3 * p + k] - (REF_REAL)x[3 * q + k];
        v.x[k].c[1] = (REF_REAL)dx[3 * p + k] - (REF_REAL)dx[3 * q + k];
    }
    return v;
}

typedef struct REF(events) { REF_REAL t[160]; int n; } REF(events);

TEST_FN void REF(add_events)(REF(events) *e, const REF(poly) *p)
{
    REF_REAL d[7];
    int k;
    for (k = 1; k <= p->n; k++) d[k - 1] = p->c[k] * k;
    e->n += REF(zeros)(p->c, p->n, e->t + e->n);
    if (p->n > 1) e->n += REF(zeros)(d, p->n - 1, e->t + e->n);
}

/* Events of point p beside the line through a and b, and beside a. */
TEST_FN void REF(line_events)(REF(events) *e, const double *x, const double *dx, int p, int a, int b, REF_REAL g2)
{
    REF(vpoly) r = REF(between_points)(x, dx, p, a), s = REF(between_points)(x, dx, b, a), c = REF(cross_poly)(&s, &r);
    REF(poly) v = REF(dot_poly)(&c, &c), w = REF(dot_poly)(&s, &s);
    v = REF(plus)(&v, &w, -g2);
    REF(add_events)(e, &v);
}

TEST_FN void REF(point_events)(REF(events) *e, const double *x, const double *dx, int p, int q, REF_REAL g2)
{
    REF(vpoly) r = REF(between_points)(x, dx, p, q);
    REF(poly) v = REF(dot_poly)(&r, &r);
    v.c[0] -= g2;
    REF(add_events)(e, &v);
}

/* Corner x[p] - x[q], sides from x[a] to x[b] and from x[c] to x[d]. */
TEST_FN void REF(plane_events)(REF(events) * e, const double *x, const double *dx, int p, int q, int a, int b, int c,
                               int d, REF_REAL g2)
{
    REF(vpoly)
    r = REF(between_points)(x, dx, p, q),
    u = REF(between_points)(x, dx, b, a), w = REF(between_points)(x, dx, d, c), n = REF(cross_poly)(&u, &w);
    REF(poly) h = REF(dot_poly)(&r, &n), nn = REF(dot_poly)(&n, &n);
    h = REF(times)(&h, &h);
    h = REF(plus)(&h, &nn, -g2);
    REF(add_events)(e, &h);
}

TEST_FN void REF(all_events)(REF(events) *e, fsi_pair kind, const double *x, const double *dx, REF_REAL g2)
{
    int i, j;
    e->n = 0;
    if (kind == FSI_EDGE_EDGE) {
        for (i = 0; i < 2; i++) {
            REF(line_events)(e, x, dx, i, 2, 3, g2);
            REF(line_events)(e, x, dx, i + 2, 0, 1, g2);
            for (j = 2; j < 4; j++) REF(point_events)(e, x, dx, i, j, g2);
        }
        REF(plane_events)(e, x, dx, 0, 2, 0, 1, 2, 3, g2);
        return;
    }
    for (i = 1; i < fsi_pair_points(kind); i++) REF(point_events)(e, x, dx, 0, i, g2);
    if (kind == FSI_POINT_EDGE) REF(line_events)(e, x, dx, 0, 1, 2, g2);
    if (kind != FSI_POINT_TRIANGLE) return;
    for (i = 1; i < 4; i++) REF(line_events)(e, x, dx, 0, i, i % 3 + 1, g2);
    REF(plane_events)(e, x, dx, 0, 1, 1, 2, 1, 3, g2);
}

TEST_FN REF_REAL REF(distance2_at)(fsi_pair kind, const double *x, const double *dx, REF_REAL t)
{
    REF_REAL at[12];
    int k, n = 3 * fsi_pair_points(kind);
    for (k = 0; k < n; k++) at[k] = (REF_REAL)x[k] + t * (REF_REAL)dx[k];
    return REF(distance2)(kind, at);
}

/* The first time in [0, 1] after which the distance lies below g; 2: never. */
TEST_FN REF_REAL REF(first_below)(fsi_pair kind, const double *x, const double *dx, REF_REAL g)
{
    REF(events) e;
    REF_REAL last = 0;
    int i, j;
    REF(all_events)(&e, kind, x, dx, g * g);
    for (i = 1; i < e.n; i++) {
        REF_REAL t = e.t[i];
        for (j = i; j > 0 && e.t[j - 1] > t; j--) e.t[j] = e.t[j - 1];
        e.t[j] = t;
    }
    e.t[e.n++] = 1;
    for (i = 0; i < e.n; i++) {
        if (e.t[i] > last && REF(distance2_at)(kind, x, dx, (last + e.t[i]) / 2) < g * g) return last;
        if (e.t[i] > last) last = e.t[i];
    }
    return 2;
}

TEST_FN REF_REAL REF(root)(REF_REAL v)
{
    REF_REAL s = (REF_REAL)sqrtl((long double)v);
    int k;
    for (k = 0; k < 3 && s > 0; k++) s = (s + v / s) / 2;
    return s;
}
