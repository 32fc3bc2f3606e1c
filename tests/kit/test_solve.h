/* test_solve.h - a matrix in the making, for the tests of fsi_solve.h.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_SOLVE_H
#define FSI_TEST_SOLVE_H

/* `a` points to the three arrays, which are filled later. */
typedef struct matrix { fsi_csr a; int *start, *col; double *value; } matrix;

/* Room for `entries` blocks, all zero. */
TEST_FN matrix matrix_make(int rows, int block, int entries)
{
    matrix m;
    m.start = (int *)calloc((size_t)rows + 1, sizeof(int));
    m.col = (int *)calloc((size_t)entries + 1, sizeof(int));
    m.value = (double *)calloc((size_t)entries * (size_t)(block * block) + 1, sizeof(double));
    m.a.rows = m.a.cols = rows;
    m.a.block = block;
    m.a.start = m.start;
    m.a.col = m.col;
    m.a.value = m.value;
    return m;
}

TEST_FN void matrix_free(matrix *m)
{
    free(m->start);
    free(m->col);
    free(m->value);
}

#endif
