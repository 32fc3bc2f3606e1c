/* math.h - the part of it that fsi may use, for targets whose own headers are not at hand.
   SPDX-License-Identifier: MIT */
#ifndef STUB_MATH_H
#define STUB_MATH_H
#define HUGE_VAL __builtin_huge_val()
#ifdef __cplusplus
extern "C" {
#endif
double sqrt(double), fabs(double), floor(double), ceil(double), sin(double), cos(double), tan(double), acos(double);
double atan2(double, double), exp(double), log(double), pow(double, double), ldexp(double, int), frexp(double, int *);
double fmod(double, double), fmin(double, double), fmax(double, double), hypot(double, double), copysign(double, double);
double asin(double), atan(double), cbrt(double), round(double), trunc(double), expm1(double), log1p(double);
float sqrtf(float), fabsf(float), floorf(float), ceilf(float), fminf(float, float), fmaxf(float, float);
#ifdef __cplusplus
}
#endif
#endif
