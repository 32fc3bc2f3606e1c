/* validate.h - what the validation programs share: their command line, sizes by --res, lines of figures, with what is
   demanded of them, liquids that must be made.
   SPDX-License-Identifier: MIT */
#ifndef FSI_VALIDATE_H
#define FSI_VALIDATE_H

static ex_app app;

/* A count of the full case, at --res per cent. */
static int scaled(int full)
{
    int n = full * app.res / 100;
    return n < 4 ? 4 : n;
}

#if defined(FSI_SPH_H)
static fsi_sph *make_liquid(fsi_sph_desc *d)
{
    fsi_sph *s;
    d->context = &app.context;
    ex_check(&app, fsi_sph_create(&s, d));
    return s;
}
#endif

/* One line; the key is made as by printf. */
static void say(double value, const char *unit, const char *key, ...)
{
    va_list args;
    va_start(args, key);
    vprintf(key, args);
    va_end(args);
    printf(" %.4g %s\n", value, unit);
    fflush(stdout);
}

/* A figure of which it is demanded that it is within `tolerance` of `want`. */
static void must(double value, double want, double tolerance, const char *unit, const char *key, ...)
{
    va_list args;
    va_start(args, key);
    vprintf(key, args);
    va_end(args);
    printf(" %.4g %s %g %g %s\n", value, unit, want, tolerance,
           fabs(value - want) <= tolerance ? "pass" : "fail");
    fflush(stdout);
}

#endif
