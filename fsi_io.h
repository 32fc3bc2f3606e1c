/* fsi_io.h - meshes, particles and pictures: OBJ, PLY, TetGen, Gmsh read; OBJ, PLY, VTP + PVD, PC2, PNG written.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_io.h"
         #include "fsi_io.h"

   EXAMPLE: read any OBJ or PLY, write it back as PLY with the height as a field
      #define FSI_IMPLEMENTATION
      #include "fsi_io.h"
      #include <stdio.h>

      int main(int argc, char **argv)
      {
          fsi_context context = fsi_default_context();
          fsi_io_mesh mesh;
          fsi_io_attribute height = { "height", FSI_IO_REAL, 1, sizeof(fsi_vec3), NULL };
          if (argc < 2 || fsi_io_read_mesh(&mesh, &context, argv[1]) != FSI_OK) {
              fprintf(stderr, "%s\n", argc < 2 ? "usage: io file.obj" : context.error.message);
              return 1;
          }
          printf("%d vertices, %d triangles\n", mesh.vertex_count, mesh.triangle_count);
          height.data = &mesh.vertices[0].y;
          mesh.attributes = &height;
          mesh.attribute_count = 1;
          if (fsi_io_write_ply(fsi_io_to_file(&context, "out.ply"), &mesh, FSI_IO_ASCII) != FSI_OK) return 1;
          fsi_io_destroy_mesh(&mesh);
          return 0;
      }
   To simulate with it, give vertices, vertex_count, triangles and triangle_count to a fsi_mesh_desc; or, from a .msh or
   a .node with its .ele, which the same call reads, tets and tet_count with corners = 4.

   MACROS: those of fsi.h.

   WHAT IT CAN AND CANNOT DO
      OBJ in    v (with w or colours), f (v, v/vt, v//vn, v/vt/vn; negative indices; polygons), l; comments, backslash
                continuations, any line ending. vt: its first two numbers. Normals, groups and materials are read over.
      PLY in    ascii, little and big endian; elements vertex, face (vertex_indices or vertex_index) and edge; every
                scalar vertex property becomes an attribute, but s t, texture_u texture_v, or u v without w become
                texture coordinates, as does a face's list texcoord; other elements and lists are skipped. No tristrips.
      TetGen in .node with .ele: tetrahedra, or Triangle's triangles where the nodes have 2 coordinates; the first
                attribute of a tetrahedron is its region. Attributes and markers of nodes are read over.
      Gmsh in   .msh 2.2 and 4.1, ascii: triangles and tetrahedra, of second order by their corners, and their first
                tag as region; other elements, types 1 to 19, and other sections are read over. Not binary.
      Nodes     keep the order of the file; their ids may be any, in any order. Those that no element uses stay.
      Polygons  are cut into triangles by ear clipping, concave ones too, at most FSI_IO_MAX_CORNERS corners.
      Out       OBJ; PLY ascii or binary; VTP (binary appended) for ParaView, PVD to string VTPs in time; PC2 (Blender's
                mesh cache); PNG, compressed. Attributes go into PLY and VTP, texture coordinates into all three,
                tetrahedra into none: write their surface.
      Limits    2^31 - 1 of anything counted; PLY: 16 elements, 128 properties, names of 63 bytes. Files are read whole.
      Files cut short, damaged or hostile are refused: no count in a file is trusted before the bytes behind it were
      seen. An OBJ announces no counts, so one that was cut between two lines cannot be told from a shorter one. NaN and
      infinity are refused in both directions, except in attributes that you write: those stay as they are.

   NUMBERS
      Text is read and written the same way in every locale. What a writer prints is read back bit for bit. Decimals of
      up to 15 digits with a power of ten within +-22 are rounded correctly, all others to 0.503 units in the last
      place.

   UNITS: none; numbers pass as they are. Files are little endian on every machine unless their header says otherwise.
   Paths go to fopen as they are. At most 16 KB of stack is used.

   FIND IN HERE (search for >>)
      >>meshes and particles  >>where bytes go  >>meshes out  >>time series  >>pictures, the API; then the
      implementation: >>decimal numbers  >>attribute types  >>meshes being read  >>polygons to triangles
      >>input  >>obj reader  >>ply reader  >>nodes by their ids  >>tetgen reader  >>gmsh reader  >>files  >>output
      >>numbers out  >>what may be written  >>obj and ply writers  >>vtp writer  >>time series writers  >>deflate  >>png
*/
#ifndef FSI_IO_H
#define FSI_IO_H

#include "fsi.h"

#define FSI_IO_MAX_CORNERS 4096 /* of a polygon that is read */

/* ---- >>meshes and particles ----------------------------------------------------------------------------------- */

/* Types of attributes; in PLY char, uchar, short, ushort, int, uint, float, double. */
typedef enum fsi_io_type {
    FSI_IO_INT8, FSI_IO_UINT8, FSI_IO_INT16, FSI_IO_UINT16, FSI_IO_INT32, FSI_IO_UINT32, FSI_IO_FLOAT, FSI_IO_DOUBLE,
    FSI_IO_TYPE_COUNT
} fsi_io_type;
#if defined(FSI_REAL_FLOAT)
#define FSI_IO_REAL FSI_IO_FLOAT
#else
#define FSI_IO_REAL FSI_IO_DOUBLE
#endif

/* A field over the vertices: velocity, colour, age ... */
typedef struct fsi_io_attribute {
    const char *name;  /* 1 to 60 printable ASCII characters, none of  space < > & " ' \  and not x, y or z alone */
    fsi_io_type type;
    int components;    /* 1 to 9. VTP keeps them together. PLY has a property for each: with 2 to 4 components the name
                          and x, y, z, w ("v" becomes vx vy vz; "color" becomes red green blue alpha), with more the
                          name and a digit. A reader makes one attribute of 1 component from each property. */
    size_t stride;     /* bytes from one vertex to the next; 0: packed */
    const void *data;  /* of the first vertex; need not be aligned */
} fsi_io_attribute;

/* Triangles, segments, tetrahedra or bare particles: what readers make and writers take. To write, start from
   fsi_io_default_mesh and point it at your arrays; they are neither changed nor kept. What a reader made is owned by
   the mesh. */
typedef struct fsi_io_mesh {
    uint32_t cookie;
    int vertex_count, triangle_count, segment_count, attribute_count;
    const fsi_vec3 *vertices;            /* vertex_count */
    const int *triangles;                /* 3 * triangle_count indices of vertices, in the order of the file */
    const int *segments;                 /* 2 * segment_count */
    const fsi_io_attribute *attributes;  /* attribute_count. From OBJ: red, green, blue (float, as in the file; 0 for
                                            vertices without) if any vertex has a colour */
    /* Texture coordinates, a pair for each vertex or, where charts meet at a vertex, for each corner of a triangle. */
    int uv_count;                        /* 0: none */
    const fsi_real *uv;                  /* 2 * uv_count numbers u, v; finite, any size */
    const int *triangle_uv;              /* 3 * triangle_count pairs of uv, -1: the corner has none. NULL: the pair of
                                            each vertex has its number, and uv_count is vertex_count (or 0) */
    /* Tetrahedra: readers of TetGen and Gmsh fill them, writers pass them over. Those read have
       (x1 - x0) . ((x2 - x0) x (x3 - x0)) >= 0, in doubles; those without volume stay. */
    int tet_count;
    const int *tets;                     /* 4 * tet_count indices of vertices, in the order of the file */
    const int *tet_region;               /* tet_count numbers, 0 for those without; NULL: none given. TetGen: the first
                                            attribute. Gmsh 2.2: the first tag, which is the physical group; 4.1: the
                                            tag of the geometric entity */
    /* Filled by readers only. */
    fsi_vec3 *editable;                  /* `vertices`, yours to scale or move; NULL in a mesh that no reader made */
    int fan_count;                       /* polygons that cross themselves or have no area: cut into fans */
    int flipped_count;                   /* tetrahedra of negative volume: their last two corners were swapped */
    void *impl;
} fsi_io_mesh;

FSI_API fsi_io_mesh fsi_io_default_mesh(void); /* empty */

/* Reads a file: TetGen if its name ends in .node or .ele, then both files of the pair; else PLY if it starts with
   "ply", Gmsh if with "$MeshFormat", else OBJ. *mesh may be uninitialised; on failure it is empty. Memory comes from
   `context` (may be NULL), which must outlive the mesh. Errors: ARGUMENT, IO, MEMORY, LIMIT, FORMAT, NAN; for the last
   three context->error.element is the line, in binary PLY the byte offset. */
FSI_API fsi_status fsi_io_read_mesh(fsi_io_mesh *mesh, fsi_context *context, const char *path);
/* The same from `size` bytes of memory, which are not kept. */
FSI_API fsi_status fsi_io_read_obj(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size);
FSI_API fsi_status fsi_io_read_ply(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size);
FSI_API fsi_status fsi_io_read_gmsh(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size);
/* The same from the bytes of a .node and a .ele; messages say which of them they are about. A .ele without its last
   line ending may have lost digits of its last number. */
FSI_API fsi_status fsi_io_read_tetgen(fsi_io_mesh *mesh, fsi_context *context, const void *node_data, size_t node_size,
                                      const void *ele_data, size_t ele_size);
/* Frees what a reader made and empties the mesh; harmless on NULL and on your own views. */
FSI_API void fsi_io_destroy_mesh(fsi_io_mesh *mesh);

/* The attribute of that name, NULL when there is none. */
FSI_API const fsi_io_attribute *fsi_io_find_attribute(const fsi_io_mesh *mesh, const char *name);
/* One number of a valid attribute, whatever its type. */
FSI_API double fsi_io_attribute_value(const fsi_io_attribute *attribute, int vertex, int component);

/* ---- >>where bytes go ----------------------------------------------------------------------------------------- */

/* Your function takes `size` bytes and returns how many it could store: fewer is a failure. */
typedef size_t fsi_io_write_fn(void *user, const void *data, size_t size);

/* The destination of a writer: a file or your function. A file that could not be completed stays as it is. */
typedef struct fsi_io_out {
    fsi_context *context;   /* memory and errors; NULL: malloc, and no message of an error */
    const char *path;       /* file to create or replace; NULL: use `write` */
    fsi_io_write_fn *write;
    void *user;             /* its first argument */
} fsi_io_out;

FSI_API fsi_io_out fsi_io_to_file(fsi_context *context, const char *path); /* opened by the writer, replaced */
FSI_API fsi_io_out fsi_io_to_function(fsi_context *context, fsi_io_write_fn *write, void *user);

/* All writers return OK, ARGUMENT (names what is wrong in the mesh), COOKIE, NAN (names the vertex), LIMIT, MEMORY or
   IO, and check everything before the first byte is written. Tetrahedra are neither checked nor written. */

/* ---- >>meshes out --------------------------------------------------------------------------------------------- */

/* Flags of writers, 0 or any sum. */
enum {
    FSI_IO_ASCII = 1,  /* PLY as text */
    FSI_IO_SINGLE = 2  /* positions as 4-byte floats, whatever fsi_real is */
};

/* No attributes. A triangle that has texture coordinates at some of its corners only is written without. */
FSI_API fsi_status fsi_io_write_obj(fsi_io_out out, const fsi_io_mesh *mesh, int flags);
/* Texture coordinates: properties s and t of vertices, or a list texcoord of faces (empty as for OBJ). */
FSI_API fsi_status fsi_io_write_ply(fsi_io_out out, const fsi_io_mesh *mesh, int flags);
/* VTK PolyData: lines from segments, polygons from triangles; a mesh with neither becomes one vertex cell a particle;
   PolyData has no volumes, so a mesh of nothing but tetrahedra shows its vertices.
   Texture coordinates are the point data "uv" (TCoords); vertices whose corners have several are written several
   times. */
FSI_API fsi_status fsi_io_write_vtp(fsi_io_out out, const fsi_io_mesh *mesh, int flags);

/* ---- >>time series -------------------------------------------------------------------------------------------- */

/* PVD: the list of files that ParaView opens as one animation. `names` are relative to the PVD. */
FSI_API fsi_status fsi_io_write_pvd(fsi_io_out out, const double *times, const char *const *names, int count);
/* Adds a frame to the PVD at `path`, which is complete after each call. Frame 0 starts a new file. FORMAT: not a PVD
   that this function wrote. */
FSI_API fsi_status fsi_io_append_pvd(fsi_context *context, const char *path, int frame, double time, const char *name);

/* PC2: positions of a fixed number of vertices, one sample a frame, 4-byte floats. Into a function: the header once,
   with the number of frames to come, and then each frame. */
FSI_API fsi_status fsi_io_write_pc2_header(fsi_io_out out, int vertex_count, int frame_count);
FSI_API fsi_status fsi_io_write_pc2_frame(fsi_io_out out, const fsi_vec3 *vertices, int vertex_count);
/* Adds a frame to the PC2 at `path`, which is complete after each call. Frame 0 starts a new file. FORMAT: not a PC2 of
   `vertex_count` vertices and `frame` frames. */
FSI_API fsi_status fsi_io_append_pc2(fsi_context *context, const char *path, int frame,
                                     const fsi_vec3 *vertices, int vertex_count);

/* ---- >>pictures ----------------------------------------------------------------------------------------------- */

/* PNG of 8 bits a channel, rows from top to bottom. channels: 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA. row_bytes: from
   one row to the next, 0 when packed, negative when the rows are stored upside down (pixels then points to the last in
   memory). Width and height 1 to 65535, less than 2^31 bytes together. Holds one copy of the picture while it
   writes. */
FSI_API fsi_status fsi_io_write_png(fsi_io_out out, const void *pixels, int width, int height, int channels,
                                    ptrdiff_t row_bytes);

#endif /* FSI_IO_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_IO_IMPLEMENTATION
#define FSI_IO_IMPLEMENTATION
#endif
#ifdef FSI_IO_IMPLEMENTATION
#ifndef FSI_IO_IMPLEMENTATION_DONE
#define FSI_IO_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_MSC_VER)
#pragma warning(push)
#pragma warning(disable : 4996) /* calls fopen unsafe */
#endif
FSI__STRICT_BEGIN
FSI__COLD_BEGIN /* all of it: files, not steps */

/* ---- >>decimal numbers ---------------------------------------------------------------------------------------- */

/* High 64 bits of a * b, rounded. */
static uint64_t fsi__mul_high(uint64_t a, uint64_t b)
{
    uint64_t al = a & 0xFFFFFFFFu, ah = a >> 32, bl = b & 0xFFFFFFFFu, bh = b >> 32;
    uint64_t low = al * bl, m1 = ah * bl + (low >> 32), m2 = al * bh + (m1 & 0xFFFFFFFFu);
    return ah * bh + (m1 >> 32) + (m2 >> 32) + (m2 >> 31 & 1);
}

/* An extended float m * 2^e with the top bit of m set. Two products leave 62 of its 64 bits right, 9 more than a double
   keeps, so that rounding goes wrong only within 0.003 units of a tie (the idea is Clinger's, 1990). */
typedef struct fsi__float64 { uint64_t m; int e; } fsi__float64;

static fsi__float64 fsi__float64_normal(fsi__float64 x)
{
    while (!(x.m >> 63)) { x.m <<= 1; x.e--; }
    return x;
}

static fsi__float64 fsi__float64_mul_power(fsi__float64 x, uint64_t mantissa, int power)
{
    x.m = fsi__mul_high(x.m, mantissa);
    x.e += 64 + ((217706 * power + (2048 << 16)) >> 16) - 2048 - 63; /* floor(power * log2(10)), |power| < 400 */
    return fsi__float64_normal(x);
}

/* 10^q = 10^(28 k) 10^r, from tables of 64-bit mantissas. */
static fsi__float64 fsi__float64_scale10(fsi__float64 x, int q)
{
    static const uint64_t coarse[25] = { /* 10^-364, 10^-336 ... 10^308 */
        0xE1AFA13AFBD14D6Eu, 0xE3E27A444D8D98B8u, 0xE61ACF033D1A45DFu, 0xE858AD248F5C22CAu, 0xEA9C227723EE8BCBu,
        0xECE53CEC4A314EBEu, 0xEF340A98172AACE5u, 0xF18899B1BC3F8CA2u, 0xF3E2F893DEC3F126u, 0xF64335BCF065D37Du,
        0xF8A95FCF88747D94u, 0xFB158592BE068D2Fu, 0xFD87B5F28300CA0Eu, 0x8000000000000000u, 0x813F3978F8940984u,
        0x82818F1281ED44A0u, 0x83C7088E1AAB65DBu, 0x850FADC09923329Eu, 0x865B86925B9BC5C2u, 0x87AA9AFF79042287u,
        0x88FCF317F22241E2u, 0x8A5296FFE33CC930u, 0x8BAB8EEFB6409C1Au, 0x8D07E33455637EB3u, 0x8E679C2F5E44FF8Fu
    };
    static const uint64_t fine[28] = { /* 10^0 ... 10^27, exact */
        0x8000000000000000u, 0xA000000000000000u, 0xC800000000000000u, 0xFA00000000000000u, 0x9C40000000000000u,
        0xC350000000000000u, 0xF424000000000000u, 0x9896800000000000u, 0xBEBC200000000000u, 0xEE6B280000000000u,
        0x9502F90000000000u, 0xBA43B74000000000u, 0xE8D4A51000000000u, 0x9184E72A00000000u, 0xB5E620F480000000u,
        0xE35FA931A0000000u, 0x8E1BC9BF04000000u, 0xB1A2BC2EC5000000u, 0xDE0B6B3A76400000u, 0x8AC7230489E80000u,
        0xAD78EBC5AC620000u, 0xD8D726B7177A8000u, 0x878678326EAC9000u, 0xA968163F0A57B400u, 0xD3C21BCECCEDA100u,
        0x84595161401484A0u, 0xA56FA5B99019A5C8u, 0xCECB8F27F4200F3Au
    };
    int k = (q + 364) / 28 - 13, r = q - 28 * k;
    if (r != 0) x = fsi__float64_mul_power(x, fine[r], r);
    if (k != 0) x = fsi__float64_mul_power(x, coarse[k + 13], 28 * k);
    return x;
}

/* To the nearest double, ties to even; subnormals keep fewer bits; too large becomes infinity. */
static double fsi__float64_round(fsi__float64 x)
{
    int exponent = x.e + 63 + 1023, drop = exponent > 0 ? 11 : 12 - exponent;
    uint64_t kept, rest, half, bits;
    double value;
    if (exponent > 2046) return HUGE_VAL;
    if (drop > 64) return 0;
    kept = drop < 64 ? x.m >> drop : 0;
    half = (uint64_t)1 << (drop - 1);
    rest = x.m & (half * 2 - 1);
    bits = ((uint64_t)(exponent > 1 ? exponent - 1 : 0) << 52) + kept;
    bits += rest > half || (rest == half && (kept & 1)); /* a carry runs on into the exponent, as it should */
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* mantissa * 10^q; one exact operation where both are exact doubles, else through 64-bit mantissas. */
static double fsi__decimal_value(uint64_t mantissa, long long q)
{
    static const double power[23] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    fsi__float64 x;
    if (mantissa == 0 || q < -364) return 0;
    if (mantissa >> 53 == 0 && q >= -22 && q <= 22)
        return q < 0 ? (double)mantissa / power[-q] : (double)mantissa * power[q];
    if (q > 308) return HUGE_VAL;
    x.m = mantissa;
    x.e = 0;
    return fsi__float64_round(fsi__float64_scale10(fsi__float64_normal(x), (int)q));
}

/* Reads [+-]digits[.digits][e[+-]digits]; returns where it ends, NULL when there is none. The first 19 digits count. */
static const unsigned char *fsi__parse_number(const unsigned char *p, const unsigned char *end, double *value)
{
    uint64_t mantissa = 0;
    long long q = 0, e = 0;
    int digits = 0, point = 0, negative = 0, e_negative = 0, used = 0;

    /* Sign, digits and point. */
    if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
    for (; p < end; p++) {
        if (*p == '.' && !point) { point = 1; continue; }
        if (*p < '0' || *p > '9') break;
        digits = 1;
        if (used < 19) { mantissa = mantissa * 10 + (uint64_t)(*p - '0'); q -= point; used += mantissa > 0; }
        else q += !point;
    }
    if (!digits) return NULL;

    /* Exponent. */
    if (p < end && (*p == 'e' || *p == 'E')) {
        const unsigned char *first;
        p++;
        if (p < end && (*p == '+' || *p == '-')) e_negative = *p++ == '-';
        for (first = p; p < end && *p >= '0' && *p <= '9'; p++) if (e < 1000000) e = e * 10 + (*p - '0');
        if (p == first) return NULL;
    }
    *value = fsi__decimal_value(mantissa, q + (e_negative ? -e : e));
    if (negative) *value = -*value;
    return p;
}

/* The other way: the fewer of two numbers of digits that reads back as the same value, with a point in every locale. */
static int fsi__format_number(char *text, size_t size, double x, int single)
{
    static const int digits[2][2] = { { 15, 17 }, { 6, 9 } };
    int k, i, n = 0, length = 0;
    double back = 0;
    for (k = 0; k < 2; k++) {
        length = snprintf(text, size, "%.*g", digits[single][k], x);
        for (n = i = 0; i < length; i++) {
            char c = text[i];
            if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'n') || c == '+' || c == '-')
                text[n++] = c; /* also e, inf, nan */
            else if (n == 0 || text[n - 1] != '.') text[n++] = '.';
        }
        if (!fsi__parse_number((unsigned char *)text, (unsigned char *)text + n, &back)) break;
        if (single ? (float)back == (float)x : back == x) break;
    }
    return n;
}

/* ---- >>attribute types ---------------------------------------------------------------------------------------- */

typedef struct fsi__io_type_info {
    const char *ply, *ply_sized, *vtk;
    int size;
    double lo, hi; /* range of an integer type */
} fsi__io_type_info;

static const fsi__io_type_info fsi__io_types[FSI_IO_TYPE_COUNT] = {
    { "char", "int8", "Int8", 1, -128, 127 },
    { "uchar", "uint8", "UInt8", 1, 0, 255 },
    { "short", "int16", "Int16", 2, -32768, 32767 },
    { "ushort", "uint16", "UInt16", 2, 0, 65535 },
    { "int", "int32", "Int32", 4, -2147483648.0, 2147483647.0 },
    { "uint", "uint32", "UInt32", 4, 0, 4294967295.0 },
    { "float", "float32", "Float32", 4, 0, 0 },
    { "double", "float64", "Float64", 8, 0, 0 }
};

/* The number stored at p in this machine's order. */
static double fsi__io_load_value(fsi_io_type type, const void *p)
{
    int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; float f; double d;
    switch (type) {
    case FSI_IO_INT8: memcpy(&i8, p, 1); return i8;
    case FSI_IO_UINT8: memcpy(&u8, p, 1); return u8;
    case FSI_IO_INT16: memcpy(&i16, p, 2); return i16;
    case FSI_IO_UINT16: memcpy(&u16, p, 2); return u16;
    case FSI_IO_INT32: memcpy(&i32, p, 4); return i32;
    case FSI_IO_UINT32: memcpy(&u32, p, 4); return u32;
    case FSI_IO_FLOAT: memcpy(&f, p, 4); return (double)f;
    default: memcpy(&d, p, 8); return d;
    }
}

/* Stores x, which is in the range of the type. */
static void fsi__io_store_value(fsi_io_type type, void *p, double x)
{
    int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; float f;
    switch (type) {
    case FSI_IO_INT8: i8 = (int8_t)x; memcpy(p, &i8, 1); break;
    case FSI_IO_UINT8: u8 = (uint8_t)x; memcpy(p, &u8, 1); break;
    case FSI_IO_INT16: i16 = (int16_t)x; memcpy(p, &i16, 2); break;
    case FSI_IO_UINT16: u16 = (uint16_t)x; memcpy(p, &u16, 2); break;
    case FSI_IO_INT32: i32 = (int32_t)x; memcpy(p, &i32, 4); break;
    case FSI_IO_UINT32: u32 = (uint32_t)x; memcpy(p, &u32, 4); break;
    case FSI_IO_FLOAT: f = (float)x; memcpy(p, &f, 4); break;
    default: memcpy(p, &x, 8);
    }
}

static size_t fsi__io_stride(const fsi_io_attribute *a)
{
    return a->stride ? a->stride : (size_t)(a->components * fsi__io_types[a->type].size);
}

FSI_API double fsi_io_attribute_value(const fsi_io_attribute *a, int vertex, int component)
{
    const char *p = (const char *)a->data + (size_t)vertex * fsi__io_stride(a);
    return fsi__io_load_value(a->type, p + component * fsi__io_types[a->type].size);
}

FSI_API const fsi_io_attribute *fsi_io_find_attribute(const fsi_io_mesh *mesh, const char *name)
{
    int i;
    for (i = 0; mesh && name && i < mesh->attribute_count; i++)
        if (strcmp(mesh->attributes[i].name, name) == 0) return &mesh->attributes[i];
    return NULL;
}

/* ---- >>meshes being read -------------------------------------------------------------------------------------- */

#define FSI__IO_NAME 64 /* bytes of a name with its end */

/* All readers collect vertices, polygons (two corners: a segment) and tetrahedra here; fsi__store_finish makes the mesh
   of them. Afterwards it is the `impl` that owns the mesh's arrays. */
typedef struct fsi__io_polygon {
    long long where; /* line or byte, for errors */
    int first;       /* of its corners; they end where the next one's begin */
} fsi__io_polygon;

typedef struct fsi__io_store {
    fsi_context *context;
    const char *function, *unit; /* unit: what errors count: "line", "byte", ".node line", ".ele line" */
    int vertex_count, vertex_capacity, corner_count, corner_capacity, polygon_count, polygon_capacity;
    fsi_vec3 *vertices;
    int *corners;
    fsi__io_polygon *polygons;
    int uv_count, uv_capacity, corner_uv_count, corner_uv_capacity, triangle_uv_capacity;
    fsi_real *uv;     /* pairs */
    int uv_per_vertex; /* 1: uv has a pair for each vertex */
    int *corner_uv;   /* of the first corner_uv_count corners, -1 none; those after have none */
    int *triangle_uv;
    int triangle_count, triangle_capacity, segment_count, segment_capacity, fan_count;
    int *triangles, *segments;
    int tet_count, tet_capacity, region_capacity, has_regions, flipped_count;
    int *tets, *tet_region;
    int value_capacity, value_size; /* rows of all attributes together, bytes a row */
    unsigned char *values;
    int attribute_count, attribute_capacity, name_capacity;
    fsi_io_attribute *attributes;
    char *names; /* FSI__IO_NAME bytes each */
} fsi__io_store;

/* Makes room for `more` rows of `size` bytes after the `used` ones of an array, doubling it at least. */
static fsi_status fsi__store_reserve(fsi__io_store *s, void *array, size_t size, int used, long long more,
                                     int *capacity)
{
    fsi__column column;
    long long rows = used + more, twice = *capacity > 128 ? 2LL * *capacity : 256;
    if (rows <= *capacity) return FSI_OK;
    if (rows > 0x7FFFFFFF)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, s->function, -1, (double)rows,
                         "the file holds more than 2^31 vertices or corners");
    if (twice > 0x7FFFFFFF) twice = 0x7FFFFFFF;
    column.array = (void **)array;
    column.size = size;
    return fsi__grow(s->context, &column, 1, used, capacity, (int)(rows > twice ? rows : twice), s->function);
}

static fsi_status fsi__store_vertex(fsi__io_store *s, fsi_vec3 x)
{
    fsi_status status = fsi__store_reserve(s, &s->vertices, sizeof x, s->vertex_count, 1, &s->vertex_capacity);
    if (status == FSI_OK) s->vertices[s->vertex_count++] = x;
    return status;
}

static fsi_status fsi__store_polygon(fsi__io_store *s, long long where)
{
    FSI__TRY(fsi__store_reserve(s, &s->polygons, sizeof *s->polygons, s->polygon_count, 1,
        &s->polygon_capacity));
    s->polygons[s->polygon_count].where = where;
    s->polygons[s->polygon_count++].first = s->corner_count;
    return FSI_OK;
}

static fsi_status fsi__store_corner(fsi__io_store *s, int vertex)
{
    fsi_status status = fsi__store_reserve(s, &s->corners, sizeof *s->corners, s->corner_count, 1, &s->corner_capacity);
    if (status == FSI_OK) s->corners[s->corner_count++] = vertex;
    return status;
}

/* Six times the volume, (x1 - x0) . ((x2 - x0) x (x3 - x0)). */
static double fsi__tet_volume6(const fsi_vec3 *x, const int *corner)
{
    double e[3][3];
    int k;
    for (k = 0; k < 3; k++) {
        e[k][0] = (double)x[corner[k + 1]].x - (double)x[corner[0]].x;
        e[k][1] = (double)x[corner[k + 1]].y - (double)x[corner[0]].y;
        e[k][2] = (double)x[corner[k + 1]].z - (double)x[corner[0]].z;
    }
    return e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) + e[0][1] * (e[1][2] * e[2][0] - e[1][0] * e[2][2])
        + e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0]);
}

/* A tetrahedron whose vertices have been stored; turned when its volume is negative. */
static fsi_status fsi__store_tet(fsi__io_store *s, const int *corner, int region)
{
    int *t;
    FSI__TRY(fsi__store_reserve(s, &s->tets, 4 * sizeof(int), s->tet_count, 1, &s->tet_capacity));
    FSI__TRY(fsi__store_reserve(s, &s->tet_region, sizeof(int), s->tet_count, 1, &s->region_capacity));
    t = s->tets + 4 * (size_t)s->tet_count;
    memcpy(t, corner, 4 * sizeof(int));
    if (fsi__tet_volume6(s->vertices, t) < 0) {
        t[2] = corner[3];
        t[3] = corner[2];
        s->flipped_count++;
    }
    s->tet_region[s->tet_count++] = region;
    return FSI_OK;
}

static fsi_status fsi__store_uv(fsi__io_store *s, double u, double v)
{
    FSI__TRY(fsi__store_reserve(s, &s->uv, 2 * sizeof *s->uv, s->uv_count, 1, &s->uv_capacity));
    s->uv[2 * (size_t)s->uv_count] = (fsi_real)u;
    s->uv[2 * (size_t)s->uv_count++ + 1] = (fsi_real)v;
    return FSI_OK;
}

/* The texture coordinate of a corner that has been stored. Corners before it that were given none get -1. */
static fsi_status fsi__store_corner_uv(fsi__io_store *s, int corner, int uv)
{
    FSI__TRY(fsi__store_reserve(s, &s->corner_uv, sizeof(int), s->corner_uv_count,
        (long long)corner + 1 - s->corner_uv_count, &s->corner_uv_capacity));
    while (s->corner_uv_count <= corner) s->corner_uv[s->corner_uv_count++] = -1;
    s->corner_uv[corner] = uv;
    return FSI_OK;
}

static int fsi__store_corners_of(const fsi__io_store *s, int polygon)
{
    int end = polygon + 1 < s->polygon_count ? s->polygons[polygon + 1].first : s->corner_count;
    return end - s->polygons[polygon].first;
}

/* An attribute of 1 component whose values lie `offset` bytes into `values`. */
static fsi_status fsi__store_attribute(fsi__io_store *s, const char *name, fsi_io_type type, size_t stride,
                                       size_t offset)
{
    fsi_io_attribute *a;
    FSI__TRY(fsi__store_reserve(s, &s->attributes, sizeof *a, s->attribute_count, 1, &s->attribute_capacity));
    a = &s->attributes[s->attribute_count++];
    a->name = name;
    a->type = type;
    a->components = 1;
    a->stride = stride;
    a->data = s->values + offset;
    return FSI_OK;
}

static void fsi__store_free_polygons(fsi__io_store *s)
{
    fsi__free(s->context, s->corners, (size_t)s->corner_capacity, sizeof *s->corners);
    fsi__free(s->context, s->polygons, (size_t)s->polygon_capacity, sizeof *s->polygons);
    fsi__free(s->context, s->corner_uv, (size_t)s->corner_uv_capacity, sizeof *s->corner_uv);
    s->corner_uv = NULL;
    s->corners = NULL;
    s->polygons = NULL;
}

static void fsi__store_free(fsi__io_store *s)
{
    fsi_context *c = s->context;
    fsi__store_free_polygons(s);
    fsi__free(c, s->vertices, (size_t)s->vertex_capacity, sizeof *s->vertices);
    fsi__free(c, s->triangles, (size_t)s->triangle_capacity, 3 * sizeof(int));
    fsi__free(c, s->segments, (size_t)s->segment_capacity, 2 * sizeof(int));
    fsi__free(c, s->tets, (size_t)s->tet_capacity, 4 * sizeof(int));
    fsi__free(c, s->tet_region, (size_t)s->region_capacity, sizeof(int));
    fsi__free(c, s->uv, (size_t)s->uv_capacity, 2 * sizeof *s->uv);
    fsi__free(c, s->triangle_uv, (size_t)s->triangle_uv_capacity, 3 * sizeof(int));
    fsi__free(c, s->values, (size_t)s->value_capacity, (size_t)s->value_size);
    fsi__free(c, s->attributes, (size_t)s->attribute_capacity, sizeof *s->attributes);
    fsi__free(c, s->names, (size_t)s->name_capacity, FSI__IO_NAME);
    fsi__free(c, s, 1, sizeof *s);
}

/* ---- >>polygons to triangles ---------------------------------------------------------------------------------- */

/* Ear clipping. The polygon is seen along its area vector, where it runs counter-clockwise. The corner b is an ear when
   it turns left and no other corner lies in the triangle a b c; it is cut off, until a triangle is left:

        c------b        Every polygon that does not cross itself has an ear (Meisters 1975). A convex one comes out as
        |    /          a fan around its first corner. When no ear is found, or the search has taken too long, the rest
        |  /  .d        is cut into a fan and counted.
        a
*/
typedef struct fsi__io_corner {
    double x, y; /* seen along the area vector */
    int corner, next; /* corner: its place in the store */
} fsi__io_corner;

/* Twice the signed area of a b c. */
static double fsi__corner_area(const fsi__io_corner *a, const fsi__io_corner *b, const fsi__io_corner *c)
{
    return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

static int fsi__corner_same(const fsi__io_corner *a, const fsi__io_corner *b) { return a->x == b->x && a->y == b->y; }

/* a, b, c follow each other; the walk tests all corners after c until it is back at a. */
static int fsi__is_ear(const fsi__io_corner *k, int a, int b, int c, long long *budget)
{
    int i;
    if (!(fsi__corner_area(&k[a], &k[b], &k[c]) > 0)) return 0;
    for (i = k[c].next; i != a; i = k[i].next, --*budget) {
        const fsi__io_corner *p = &k[i];
        if (fsi__corner_same(p, &k[a]) || fsi__corner_same(p, &k[b]) || fsi__corner_same(p, &k[c])) continue;
        if (fsi__corner_area(&k[a], &k[b], p) < 0 || fsi__corner_area(&k[b], &k[c], p) < 0) continue;
        if (fsi__corner_area(&k[c], &k[a], p) >= 0) return 0;
    }
    return 1;
}

/* Writes n - 2 triangles; returns 0 when some of them had to be a fan. */
static int fsi__clip_ears(fsi__io_corner *k, int n, int *out)
{
    int a = 0, b, c, left = n, refused = 0, proper = 1;
    long long budget = 8LL * n * n;
    while (left > 2) {
        b = k[a].next;
        c = k[b].next;
        if (proper && !fsi__is_ear(k, a, b, c, &budget)) {
            a = b;
            proper = ++refused <= left && budget > 0;
            continue;
        }
        *out++ = k[a].corner;
        *out++ = k[b].corner;
        *out++ = k[c].corner;
        k[a].next = c;
        refused = 0;
        left--;
    }
    return proper;
}

/* Newell's area vector, sum of (p_i - p_0) x (p_(i+1) - p_0), drops the coordinate along which it is longest. */
static void fsi__project_polygon(const fsi__io_store *s, int first, int n, fsi__io_corner *k)
{
    const int *corner = s->corners + first;
    double area[3] = { 0, 0, 0 }, p[3], q[3], x[3];
    const fsi_vec3 *o = &s->vertices[corner[0]], *v;
    int i, axis, u, w;

    /* Twice the area vector, from the first corner. */
    for (i = 0; i < n; i++) {
        v = &s->vertices[corner[i]];
        q[0] = (double)v->x - (double)o->x;
        q[1] = (double)v->y - (double)o->y;
        q[2] = (double)v->z - (double)o->z;
        for (axis = 0; axis < 3 && i > 0; axis++)
            area[axis] += p[(axis + 1) % 3] * q[(axis + 2) % 3] - p[(axis + 2) % 3] * q[(axis + 1) % 3];
        memcpy(p, q, sizeof p);
    }

    /* The two coordinates that stay, so that the polygon turns counter-clockwise. */
    axis = fabs(area[0]) > fabs(area[1]) ? 0 : 1;
    if (fabs(area[2]) >= fabs(area[axis])) axis = 2;
    u = (axis + (area[axis] > 0 ? 1 : 2)) % 3;
    w = 3 - axis - u;
    for (i = 0; i < n; i++) {
        v = &s->vertices[corner[i]];
        x[0] = (double)v->x;
        x[1] = (double)v->y;
        x[2] = (double)v->z;
        k[i].x = x[u];
        k[i].y = x[w];
        k[i].corner = first + i;
        k[i].next = (i + 1) % n;
    }
}

/* Corners of triangles become their vertices and texture coordinates. */
static fsi_status fsi__store_resolve(fsi__io_store *s, int triangles)
{
    int i, k, uv, mapped = 0, missing = 0;
    fsi_status status = FSI_OK;
    if (s->corner_uv_count > 0 && triangles > 0)
        status = fsi__store_reserve(s, &s->triangle_uv, 3 * sizeof(int), 0, triangles, &s->triangle_uv_capacity);
    for (i = 0; i < 3 * triangles && status == FSI_OK; i++) {
        k = s->triangles[i];
        s->triangles[i] = s->corners[k];
        if (!s->triangle_uv) continue;
        uv = k < s->corner_uv_count ? s->corner_uv[k] : -1;
        missing += uv >= s->uv_count;
        s->triangle_uv[i] = uv < s->uv_count ? uv : -1;
        mapped += s->triangle_uv[i] >= 0;
    }
    if (missing > 0)
        fsi__note(s->context, 1, "some corners name texture coordinates that are not in the file: they have none");
    if (mapped == 0 && s->uv_per_vertex == 0) s->uv_count = 0;
    return status;
}

static fsi_status fsi__store_triangulate(fsi__io_store *s, int largest)
{
    int i, n, *triangle = s->triangles, *segment = s->segments;
    fsi__io_corner *scratch = (fsi__io_corner *)fsi__alloc(s->context, (size_t)largest, sizeof *scratch);
    if (!scratch)
        return fsi__fail(s->context, FSI_ERROR_MEMORY, s->function, -1, largest,
                         "no memory for a polygon of %d corners", largest);

    /* Polygons become triangles by cutting ears; what has two corners is a segment. */
    for (i = 0; i < s->polygon_count; i++) {
        const int *corner = s->corners + s->polygons[i].first;
        n = fsi__store_corners_of(s, i);
        if (n > 3) {
            fsi__project_polygon(s, s->polygons[i].first, n, scratch);
            s->fan_count += !fsi__clip_ears(scratch, n, triangle);
            triangle += 3 * (n - 2);
        } else if (n == 3) {
            for (n = 0; n < 3; n++) *triangle++ = s->polygons[i].first + n;
        } else {
            memcpy(segment, corner, 2 * sizeof *corner);
            segment += 2;
        }
    }
    fsi__free(s->context, scratch, (size_t)largest, sizeof *scratch);
    if (s->fan_count > 0) fsi__note(s->context, 1, "some polygons cross themselves or have no area: cut into fans");
    return FSI_OK;
}

/* Checks all corners, counts what the polygons will become, and makes it. */
static fsi_status fsi__store_polygons_finish(fsi__io_store *s)
{
    int i, k, n, largest = 0, triangles = 0, segments = 0;
    fsi_status status;

    /* Corners must exist; sizes. */
    for (i = 0; i < s->polygon_count; i++) {
        const int *corner = s->corners + s->polygons[i].first;
        n = fsi__store_corners_of(s, i);
        for (k = 0; k < n; k++)
            if (corner[k] >= s->vertex_count)
                return fsi__fail(s->context, FSI_ERROR_FORMAT, s->function, s->polygons[i].where, corner[k],
                                 "%s %.0f: corner %d is vertex %.0f of %d (counted from 1)", s->unit,
                                 (double)s->polygons[i].where, k + 1, (double)corner[k] + 1, s->vertex_count);
        if (n > largest) largest = n;
        if (n > 2) triangles += n - 2;
        else segments++;
    }

    /* Room, then triangles and segments. */
    status = fsi__store_reserve(s, &s->triangles, 3 * sizeof(int), 0, triangles, &s->triangle_capacity);
    if (status == FSI_OK)
        status = fsi__store_reserve(s, &s->segments, 2 * sizeof(int), 0, segments, &s->segment_capacity);
    if (status == FSI_OK) status = fsi__store_triangulate(s, largest);
    if (status == FSI_OK) status = fsi__store_resolve(s, triangles);
    s->triangle_count = triangles;
    s->segment_count = segments;
    fsi__store_free_polygons(s);
    return status;
}

/* Hands the store to the mesh, or frees it when reading has failed. */
static fsi_status fsi__store_finish(fsi__io_store *s, fsi_status status, fsi_io_mesh *mesh)
{
    if (status == FSI_OK) status = fsi__store_polygons_finish(s);
    if (status != FSI_OK) {
        fsi__store_free(s);
        return status;
    }

    /* Hand all arrays over to the mesh, which owns the store. */
    mesh->vertex_count = s->vertex_count;
    mesh->triangle_count = s->triangle_count;
    mesh->segment_count = s->segment_count;
    mesh->attribute_count = s->attribute_count;
    mesh->vertices = mesh->editable = s->vertices;
    mesh->triangles = s->triangles;
    mesh->segments = s->segments;
    mesh->attributes = s->attributes;
    mesh->uv_count = s->uv_count;
    mesh->uv = s->uv_count > 0 ? s->uv : NULL;
    mesh->triangle_uv = s->uv_count > 0 && !s->uv_per_vertex ? s->triangle_uv : NULL;
    mesh->tet_count = s->tet_count;
    mesh->tets = s->tets;
    mesh->tet_region = s->has_regions ? s->tet_region : NULL;
    mesh->fan_count = s->fan_count;
    mesh->flipped_count = s->flipped_count;
    mesh->impl = s;
    return FSI_OK;
}

FSI_API fsi_io_mesh fsi_io_default_mesh(void)
{
    fsi_io_mesh mesh;
    memset(&mesh, 0, sizeof mesh);
    mesh.cookie = FSI__COOKIE('i', fsi_io_mesh);
    return mesh;
}

FSI_API void fsi_io_destroy_mesh(fsi_io_mesh *mesh)
{
    if (!mesh || mesh->cookie != FSI__COOKIE('i', fsi_io_mesh)) return;
    if (mesh->impl) fsi__store_free((fsi__io_store *)mesh->impl);
    *mesh = fsi_io_default_mesh();
}

/* ---- >>input -------------------------------------------------------------------------------------------------- */

/* The bytes being read, as text (line counts) or binary. */
typedef struct fsi__io_input {
    fsi__io_store *store;
    const unsigned char *begin, *p, *end;
    long long line;
    int binary;
} fsi__io_input;

static long long fsi__io_where(const fsi__io_input *in) { return in->binary ? in->p - in->begin : in->line; }

static fsi_status fsi__io_refuse(const fsi__io_input *in, fsi_status status, double value, const char *text)
{
    long long where = fsi__io_where(in);
    return fsi__fail(in->store->context, status, in->store->function, where, value, "%s %.0f: %s", in->store->unit,
                     (double)where, text);
}

static int fsi__io_is_break(int c) { return c == '\n' || c == '\r'; }

/* One line ending: LF, CR or CR LF. */
static void fsi__io_break(fsi__io_input *in)
{
    if (in->end - in->p > 1 && in->p[0] == '\r' && in->p[1] == '\n') in->p++;
    in->p++;
    in->line++;
}

/* Blanks, control characters and continued lines; with `across` also line endings. */
static void fsi__io_skip_blanks(fsi__io_input *in, int across)
{
    while (in->p < in->end) {
        if (fsi__io_is_break(*in->p)) {
            if (!across) return;
            fsi__io_break(in);
        } else if (*in->p == '\\' && in->end - in->p > 1 && fsi__io_is_break(in->p[1])) {
            in->p++;
            fsi__io_break(in);
        } else if (*in->p <= ' ') in->p++;
        else return;
    }
}

static void fsi__io_skip_line(fsi__io_input *in)
{
    while (in->p < in->end && !fsi__io_is_break(*in->p)) in->p++;
    if (in->p < in->end) fsi__io_break(in);
}

/* Length of the word at p, up to the next blank or line ending. */
static size_t fsi__io_token(const fsi__io_input *in)
{
    const unsigned char *q = in->p;
    while (q < in->end && *q > ' ') q++;
    return (size_t)(q - in->p);
}

static int fsi__io_token_is(const unsigned char *token, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(token, text, size) == 0;
}

static fsi_status fsi__io_refuse_token(const fsi__io_input *in, fsi_status status, const char *text)
{
    char quoted[96];
    int i, n = (int)fsi__io_token(in) < 32 ? (int)fsi__io_token(in) : 32;
    for (i = 0; i < n; i++) quoted[i] = (char)(in->p[i] < 127 ? in->p[i] : '?');
    quoted[n] = 0;
    if (n > 0) snprintf(quoted + n, sizeof quoted - (size_t)n, "' %s", text);
    return n > 0 ? fsi__fail(in->store->context, status, in->store->function, in->line, 0, "%s %.0f: '%s",
                             in->store->unit, (double)in->line, quoted)
                 : fsi__io_refuse(in, status, 0, "ends too early");
}

/* The number at p, which must fill its token and be finite. */
static fsi_status fsi__io_number(fsi__io_input *in, double *value)
{
    const unsigned char *q = fsi__parse_number(in->p, in->end, value);
    if (!q || (q < in->end && *q > ' ' && *q != '\\'))
        return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is not a number");
    if (!fsi_is_finite(*value)) return fsi__io_refuse_token(in, FSI_ERROR_NAN, "is too large");
    in->p = q;
    return FSI_OK;
}

/* Is the statement over? A comment goes to the end of its line. */
static int fsi__io_at_end(fsi__io_input *in)
{
    fsi__io_skip_blanks(in, 0);
    return in->p == in->end || fsi__io_is_break(*in->p) || *in->p == '#';
}

/* Are there as many bytes as what a file announces takes at least? */
static fsi_status fsi__io_announced(const fsi__io_input *in, double need)
{
    double here = (double)(in->end - in->p);
    if (need <= here) return FSI_OK;
    return fsi__fail(in->store->context, FSI_ERROR_FORMAT, in->store->function, fsi__io_where(in), need,
                     "the header announces at least %.0f bytes, but %.0f follow: the file is cut short", need, here);
}

/* What all readers start with. */
static fsi_status fsi__io_open(fsi__io_input *in, fsi_io_mesh *mesh, fsi_context *context, const void *data,
                               size_t size, const char *function)
{
    memset(in, 0, sizeof *in);
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    if (!mesh) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "mesh is NULL");
    *mesh = fsi_io_default_mesh();
    if (!data) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "data is NULL");
    in->store = (fsi__io_store *)fsi__alloc(context, 1, sizeof *in->store);
    if (!in->store) return fsi__fail(context, FSI_ERROR_MEMORY, function, -1, 0, "no memory to start reading");
    in->store->context = context;
    in->store->function = function;
    in->store->unit = "line";
    in->begin = in->p = (const unsigned char *)data;
    in->end = in->begin + size;
    in->line = 1;
    return FSI_OK;
}

/* ---- >>obj reader --------------------------------------------------------------------------------------------- */

/* v x y z [w | red green blue [alpha]] */
static fsi_status fsi__obj_vertex(fsi__io_input *in)
{
    fsi__io_store *s = in->store;
    fsi_status status;
    fsi_vec3 x;
    double v[8];
    int n = 0, k, ok, rows;
    while (!fsi__io_at_end(in) && n < 8) {
        FSI__TRY(fsi__io_number(in, &v[n++]));
    }
    if (n < 3 || n == 5 || n == 8)
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, n, "a vertex needs 3 numbers, and may have a weight or a colour");
    x = fsi_v3((fsi_real)v[0], (fsi_real)v[1], (fsi_real)v[2]);
    ok = fsi_v3_is_finite(x);
    for (k = 3; k < n; k++) ok = ok && fsi_is_finite((double)(float)v[k]);
    if (!ok) return fsi__io_refuse(in, FSI_ERROR_NAN, 0, "a coordinate or colour is too large");
    status = fsi__store_vertex(s, x);
    if (status != FSI_OK || n < 6) return status;
    rows = s->value_capacity;
    status = fsi__store_reserve(s, &s->values, 12, rows, s->vertex_capacity - rows, &s->value_capacity);
    for (k = 0; k < 3 && status == FSI_OK; k++)
        fsi__io_store_value(FSI_IO_FLOAT, s->values + 12 * (size_t)(s->vertex_count - 1) + 4 * k, v[3 + k]);
    return status;
}

/* vt u [v [w]] */
static fsi_status fsi__obj_texture(fsi__io_input *in)
{
    double v[3] = { 0, 0, 0 };
    int n = 0;
    while (!fsi__io_at_end(in) && n < 3) {
        FSI__TRY(fsi__io_number(in, &v[n++]));
    }
    if (n == 0) return fsi__io_refuse(in, FSI_ERROR_FORMAT, n, "a texture coordinate needs a number");
    if (!fsi_is_finite((double)(fsi_real)v[0]) || !fsi_is_finite((double)(fsi_real)v[1]))
        return fsi__io_refuse(in, FSI_ERROR_NAN, 0, "a texture coordinate is too large");
    return fsi__store_uv(in->store, v[0], v[1]);
}

/* An index, from 1 or, negative, from the newest vertex back. */
static fsi_status fsi__obj_index(fsi__io_input *in, long long *index)
{
    const unsigned char *first;
    int negative = 0;
    if (in->p < in->end && (*in->p == '-' || *in->p == '+')) negative = *in->p++ == '-';
    for (first = in->p, *index = 0; in->p < in->end && *in->p >= '0' && *in->p <= '9'; in->p++)
        if (*index <= 0x7FFFFFFF) *index = *index * 10 + (*in->p - '0');
    if (negative) *index = -*index;
    return in->p > first ? FSI_OK : FSI_ERROR_FORMAT;
}

/* v, v/vt, v//vn or v/vt/vn; the first must name a vertex, the others need only be numbers. *uv: -1 where vt names
   none. */
static fsi_status fsi__obj_corner(fsi__io_input *in, int *vertex, int *uv)
{
    const fsi__io_store *s = in->store;
    fsi__io_input at = *in;
    long long index, other[2] = { 0, 0 };
    int slashes;
    fsi_status status = fsi__obj_index(in, &index);
    for (slashes = 0; status == FSI_OK && slashes < 2 && in->p < in->end && *in->p == '/'; slashes++) {
        in->p++;
        if (in->p < in->end && *in->p > ' ' && *in->p != '/') status = fsi__obj_index(in, &other[slashes]);
    }
    if (status != FSI_OK || (in->p < in->end && *in->p > ' ' && *in->p != '\\'))
        return fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, "is not a corner (v, v/vt, v//vn or v/vt/vn)");
    if (index == 0 || index > 0x7FFFFFFF || -index > s->vertex_count)
        return fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, "names no vertex");
    *vertex = (int)(index > 0 ? index - 1 : s->vertex_count + index);
    if (other[0] < 0) other[0] = other[0] >= -s->uv_count ? s->uv_count + other[0] + 1 : 0;
    *uv = other[0] > 0 && other[0] <= 0x7FFFFFFF ? (int)(other[0] - 1) : -1;
    return FSI_OK;
}

static fsi_status fsi__obj_face(fsi__io_input *in)
{
    fsi_status status = fsi__store_polygon(in->store, in->line);
    int n = 0, vertex, uv;
    while (status == FSI_OK && !fsi__io_at_end(in)) {
        if (++n > FSI_IO_MAX_CORNERS)
            return fsi__io_refuse(in, FSI_ERROR_LIMIT, n, "a polygon has too many corners (FSI_IO_MAX_CORNERS)");
        status = fsi__obj_corner(in, &vertex, &uv);
        if (status == FSI_OK) status = fsi__store_corner(in->store, vertex);
        if (status == FSI_OK && uv >= 0) status = fsi__store_corner_uv(in->store, in->store->corner_count - 1, uv);
    }
    if (status == FSI_OK && n < 3) return fsi__io_refuse(in, FSI_ERROR_FORMAT, n, "a face has fewer than 3 corners");
    return status;
}

static fsi_status fsi__obj_line(fsi__io_input *in)
{
    fsi_status status = FSI_OK;
    int n = 0, vertex, uv, last = 0;
    while (status == FSI_OK && !fsi__io_at_end(in)) {
        status = fsi__obj_corner(in, &vertex, &uv);
        if (status == FSI_OK && n++ > 0) {
            status = fsi__store_polygon(in->store, in->line);
            if (status == FSI_OK) status = fsi__store_corner(in->store, last);
            if (status == FSI_OK) status = fsi__store_corner(in->store, vertex);
        }
        last = vertex;
    }
    if (status == FSI_OK && n < 2) return fsi__io_refuse(in, FSI_ERROR_FORMAT, n, "a line has fewer than 2 corners");
    return status;
}

static fsi_status fsi__obj_statements(fsi__io_input *in)
{
    fsi_status status = FSI_OK;
    if (in->end - in->p >= 3 && memcmp(in->p, "\xEF\xBB\xBF", 3) == 0) in->p += 3; /* byte order mark */
    while (in->p < in->end && status == FSI_OK) {
        fsi__io_skip_blanks(in, 1);
        if (fsi__io_token(in) == 1) {
            int keyword = *in->p++;
            if (keyword == 'v') status = fsi__obj_vertex(in);
            if (keyword == 'f') status = fsi__obj_face(in);
            if (keyword == 'l') status = fsi__obj_line(in);
        } else if (fsi__io_token(in) == 2 && memcmp(in->p, "vt", 2) == 0) {
            in->p += 2;
            status = fsi__obj_texture(in);
        }
        if (status == FSI_OK) fsi__io_skip_line(in);
    }
    if (status == FSI_OK && in->store->vertex_count == 0)
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends without a vertex: is it an OBJ?");
    return status;
}

static fsi_status fsi__obj_colors(fsi__io_store *s)
{
    static const char *const names[3] = { "red", "green", "blue" };
    int rows = s->value_capacity;
    size_t k;
    fsi_status status;
    if (!s->values) return FSI_OK;
    status = fsi__store_reserve(s, &s->values, 12, rows, s->vertex_count - rows, &s->value_capacity);
    for (k = 0; k < 3 && status == FSI_OK; k++) status = fsi__store_attribute(s, names[k], FSI_IO_FLOAT, 12, 4 * k);
    return status;
}

FSI_API fsi_status fsi_io_read_obj(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size)
{
    fsi__io_input in;
    fsi_status status;
    FSI__TRY(fsi__io_open(&in, mesh, context, data, size, "fsi_io_read_obj"));
    in.store->value_size = 12;
    status = fsi__obj_statements(&in);
    if (status == FSI_OK) status = fsi__obj_colors(in.store);
    return fsi__store_finish(in.store, status, mesh);
}

/* ---- >>ply reader --------------------------------------------------------------------------------------------- */

#define FSI__PLY_ELEMENTS 16
#define FSI__PLY_PROPERTIES 128

/* Use of a property. Roles up to V are coordinates; SKIP passes over the value, or over a whole list. */
typedef enum fsi__ply_role {
    FSI__PLY_X, FSI__PLY_Y, FSI__PLY_Z, FSI__PLY_U, FSI__PLY_V, FSI__PLY_ATTRIBUTE,
    FSI__PLY_CORNERS, FSI__PLY_TEXCOORD, FSI__PLY_EDGE_START, FSI__PLY_EDGE_END, FSI__PLY_SKIP
} fsi__ply_role;

typedef struct fsi__ply_property {
    char name[FSI__IO_NAME];
    fsi_io_type type, count_type;
    int is_list;
    fsi__ply_role role;
    size_t offset; /* of an attribute in the store's values */
} fsi__ply_property;

typedef struct fsi__ply_element {
    char name[FSI__IO_NAME];
    double count;
    int first, end; /* of its properties */
} fsi__ply_element;

typedef enum fsi__ply_format {
    FSI__PLY_NO_FORMAT, FSI__PLY_ASCII, FSI__PLY_LITTLE_ENDIAN, FSI__PLY_BIG_ENDIAN
} fsi__ply_format;

typedef struct fsi__ply {
    fsi__io_input in;
    fsi__ply_format format;
    int element_count, property_count;
    fsi__ply_element elements[FSI__PLY_ELEMENTS];
    fsi__ply_property properties[FSI__PLY_PROPERTIES];
} fsi__ply;

static fsi_status fsi__ply_take_name(fsi__io_input *in, char *name)
{
    size_t n;
    fsi__io_skip_blanks(in, 0);
    n = fsi__io_token(in);
    if (n == 0 || n >= FSI__IO_NAME) return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no name of 1 to 63 bytes");
    memcpy(name, in->p, n);
    name[n] = 0;
    in->p += n;
    return FSI_OK;
}

static fsi_status fsi__ply_take_type(fsi__io_input *in, fsi_io_type *type)
{
    int i;
    size_t n;
    fsi__io_skip_blanks(in, 0);
    n = fsi__io_token(in);
    for (i = 0; i < FSI_IO_TYPE_COUNT; i++) {
        const fsi__io_type_info *t = &fsi__io_types[i];
        if (!fsi__io_token_is(in->p, n, t->ply) && !fsi__io_token_is(in->p, n, t->ply_sized)) continue;
        *type = (fsi_io_type)i;
        in->p += n;
        return FSI_OK;
    }
    return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no PLY type");
}

/* element name count */
static fsi_status fsi__ply_header_element(fsi__ply *ply)
{
    fsi__ply_element *e = &ply->elements[ply->element_count];
    if (ply->element_count == FSI__PLY_ELEMENTS)
        return fsi__io_refuse(&ply->in, FSI_ERROR_LIMIT, ply->element_count, "more than 16 elements");
    FSI__TRY(fsi__ply_take_name(&ply->in, e->name));
    fsi__io_skip_blanks(&ply->in, 0);
    FSI__TRY(fsi__io_number(&ply->in, &e->count));
    if (!(e->count >= 0 && e->count <= 4294967295.0) || e->count != floor(e->count))
        return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, e->count,
                              "the count of an element is negative, too large or no whole number");
    e->first = e->end = ply->property_count;
    ply->element_count++;
    return FSI_OK;
}

/* property type name, or property list count_type type name */
static fsi_status fsi__ply_header_property(fsi__ply *ply)
{
    fsi__io_input *in = &ply->in;
    fsi__ply_property *p = &ply->properties[ply->property_count];
    fsi_status status = FSI_OK;
    if (ply->element_count == 0)
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "a property stands before the first element");
    if (ply->property_count == FSI__PLY_PROPERTIES)
        return fsi__io_refuse(in, FSI_ERROR_LIMIT, ply->property_count, "more than 128 properties");
    fsi__io_skip_blanks(in, 0);
    p->is_list = fsi__io_token_is(in->p, fsi__io_token(in), "list");
    if (p->is_list) {
        in->p += 4;
        status = fsi__ply_take_type(in, &p->count_type);
        if (status == FSI_OK && p->count_type >= FSI_IO_FLOAT)
            return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the length of a list must have an integer type");
    }
    if (status == FSI_OK) status = fsi__ply_take_type(in, &p->type);
    if (status == FSI_OK) status = fsi__ply_take_name(in, p->name);
    ply->elements[ply->element_count - 1].end = ++ply->property_count;
    return status;
}

static fsi_status fsi__ply_header_format(fsi__ply *ply)
{
    static const char *const names[4] = { "", "ascii", "binary_little_endian", "binary_big_endian" };
    fsi__io_input *in = &ply->in;
    int i;
    fsi__io_skip_blanks(in, 0);
    for (i = 1; i < 4; i++) if (fsi__io_token_is(in->p, fsi__io_token(in), names[i])) ply->format = (fsi__ply_format)i;
    if (ply->format == FSI__PLY_NO_FORMAT) return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no PLY format");
    in->p += fsi__io_token(in);
    fsi__io_skip_blanks(in, 0);
    if (fsi__io_token_is(in->p, fsi__io_token(in), "1.0")) return FSI_OK;
    return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no PLY version that is known");
}

/* The line ending after end_header. In a binary file a CR may be followed by data that looks like LF: then the first
   line tells whether CR LF is one ending. */
static fsi_status fsi__ply_header_end(fsi__ply *ply)
{
    fsi__io_input *in = &ply->in;
    int crlf = in->end - in->begin > 4 && in->begin[3] == '\r' && in->begin[4] == '\n';
    if (ply->format == FSI__PLY_NO_FORMAT) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the header has no format");
    fsi__io_skip_blanks(in, 0);
    if (in->p == in->end || !fsi__io_is_break(*in->p))
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "end_header does not end its line");
    in->binary = ply->format != FSI__PLY_ASCII;
    if (in->binary) in->store->unit = "byte";
    if (in->binary && !crlf) in->p++;
    else fsi__io_break(in);
    return FSI_OK;
}

/* Everything up to and with end_header. Lines that start otherwise (comment, obj_info) are skipped. */
static fsi_status fsi__ply_header(fsi__ply *ply)
{
    fsi__io_input *in = &ply->in;
    fsi_status status = FSI_OK;
    if (!fsi__io_token_is(in->p, fsi__io_token(in), "ply"))
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file does not start with 'ply'");
    while (status == FSI_OK) {
        const unsigned char *word;
        size_t n;
        fsi__io_skip_line(in);
        if (in->p == in->end) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends inside the header");
        word = in->p;
        n = fsi__io_token(in);
        in->p += n;
        if (fsi__io_token_is(word, n, "end_header")) return fsi__ply_header_end(ply);
        if (fsi__io_token_is(word, n, "element")) status = fsi__ply_header_element(ply);
        if (fsi__io_token_is(word, n, "property")) status = fsi__ply_header_property(ply);
        if (fsi__io_token_is(word, n, "format")) status = fsi__ply_header_format(ply);
    }
    return status;
}

/* A property of `element` by name; scalar or list. */
static fsi__ply_property *fsi__ply_find(fsi__ply *ply, const fsi__ply_element *element, const char *name, int is_list)
{
    int i;
    for (i = element->first; i < element->end; i++)
        if (ply->properties[i].is_list == is_list && strcmp(ply->properties[i].name, name) == 0)
            return &ply->properties[i];
    return NULL;
}

/* Places the attributes in the store, one array after another, the widest first so that all are aligned. */
static fsi_status fsi__ply_plan_attributes(fsi__ply *ply, const fsi__ply_element *e)
{
    fsi__io_store *s = ply->in.store;
    fsi_status status;
    int i, size, used = 0;

    /* Offsets by size. */
    for (size = 8; size > 0; size /= 2) {
        for (i = e->first; i < e->end; i++) {
            fsi__ply_property *p = &ply->properties[i];
            if (p->role != FSI__PLY_ATTRIBUTE || fsi__io_types[p->type].size != size) continue;
            p->offset = (size_t)e->count * (size_t)s->value_size;
            s->value_size += size;
        }
    }

    /* Room for values and names; then the attributes themselves. */
    if (s->value_size == 0 || e->count == 0) return FSI_OK;
    status = fsi__store_reserve(s, &s->values, (size_t)s->value_size, 0, (long long)e->count, &s->value_capacity);
    if (status == FSI_OK)
        status = fsi__store_reserve(s, &s->names, FSI__IO_NAME, 0, e->end - e->first, &s->name_capacity);
    for (i = e->first; i < e->end && status == FSI_OK; i++) {
        char *name = s->names + FSI__IO_NAME * used;
        if (ply->properties[i].role != FSI__PLY_ATTRIBUTE) continue;
        memcpy(name, ply->properties[i].name, FSI__IO_NAME);
        status = fsi__store_attribute(s, name, ply->properties[i].type, 0, ply->properties[i].offset);
        used++;
    }
    return status;
}

/* Are there texture coordinates? u and v beside a w are a vector. */
static int fsi__ply_plan_uv(fsi__ply *ply, const fsi__ply_element *e)
{
    static const char *const names[3][2] = { { "s", "t" }, { "texture_u", "texture_v" }, { "u", "v" } };
    int k;
    for (k = 0; k < 3; k++) {
        fsi__ply_property *u = fsi__ply_find(ply, e, names[k][0], 0), *v = fsi__ply_find(ply, e, names[k][1], 0);
        if (!u || !v || (k == 2 && fsi__ply_find(ply, e, "w", 0))) continue;
        u->role = FSI__PLY_U;
        v->role = FSI__PLY_V;
        return 1;
    }
    return 0;
}

/* Vertices: x, y and, if there is one, z are positions, texture coordinates as above, other scalars attributes. */
static fsi_status fsi__ply_plan_vertices(fsi__ply *ply, const fsi__ply_element *e)
{
    static const char *const axes[3] = { "x", "y", "z" };
    fsi__io_store *s = ply->in.store;
    fsi_status status;
    int i;
    for (i = e->first; i < e->end; i++)
        ply->properties[i].role = ply->properties[i].is_list ? FSI__PLY_SKIP : FSI__PLY_ATTRIBUTE;
    for (i = 0; i < 3; i++) {
        fsi__ply_property *p = fsi__ply_find(ply, e, axes[i], 0);
        if (p) p->role = (fsi__ply_role)(FSI__PLY_X + i);
        else if (i < 2) return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, 0, "the element vertex has no x or no y");
    }
    s->uv_per_vertex = fsi__ply_plan_uv(ply, e);
    status = fsi__store_reserve(s, &s->vertices, sizeof *s->vertices, 0, (long long)e->count, &s->vertex_capacity);
    if (status == FSI_OK) status = fsi__ply_plan_attributes(ply, e);
    if (status == FSI_OK) s->vertex_count = (int)e->count;
    return status;
}

/* Decides what is read of each element, and checks that the file is long enough for all rows before memory is taken. */
static fsi_status fsi__ply_plan(fsi__ply *ply)
{
    const fsi__io_input *in = &ply->in;
    const fsi__ply_element *vertices = NULL, *e;
    double need = in->binary ? 0 : -1; /* the last number needs no blank after it */
    int i;
    for (e = ply->elements; e < ply->elements + ply->element_count; e++) {
        fsi__ply_property *corners = fsi__ply_find(ply, e, "vertex_indices", 1);
        fsi__ply_property *start = fsi__ply_find(ply, e, "vertex1", 0), *end = fsi__ply_find(ply, e, "vertex2", 0);
        int is_vertex = strcmp(e->name, "vertex") == 0;

        /* Properties that an element must have, and its least length. */
        if (e->count > 0 && e->first == e->end)
            return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "an element has no property");
        if (is_vertex && vertices) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the element vertex appears twice");
        if (is_vertex) vertices = e;
        for (i = e->first; i < e->end; i++) {
            fsi__ply_property *p = &ply->properties[i];
            need += e->count * (in->binary ? fsi__io_types[p->is_list ? p->count_type : p->type].size : 2);
            p->role = FSI__PLY_SKIP;
        }

        /* Faces and edges. */
        if (!corners) corners = fsi__ply_find(ply, e, "vertex_index", 1);
        if (corners && strcmp(e->name, "face") == 0) {
            fsi__ply_property *texture = fsi__ply_find(ply, e, "texcoord", 1);
            corners->role = FSI__PLY_CORNERS;
            if (texture) texture->role = FSI__PLY_TEXCOORD;
        }
        if (start && end && strcmp(e->name, "edge") == 0) {
            start->role = FSI__PLY_EDGE_START;
            end->role = FSI__PLY_EDGE_END;
        }
    }

    /* Is the file long enough? */
    FSI__TRY(fsi__io_announced(in, need));
    if (!vertices) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "there is no element vertex");
    return fsi__ply_plan_vertices(ply, vertices);
}

static fsi_status fsi__ply_cut(const fsi__ply *ply)
{
    return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, 0,
                          "the file ends before the last number that its header announces");
}

/* The next number of a binary file. */
static fsi_status fsi__ply_binary(fsi__ply *ply, fsi_io_type type, double *value)
{
    static const uint16_t one = 1;
    fsi__io_input *in = &ply->in;
    int i, size = fsi__io_types[type].size, host_big_endian = *(const unsigned char *)&one == 0;
    unsigned char bytes[8];
    if (in->end - in->p < size) return fsi__ply_cut(ply);
    for (i = 0; i < size; i++)
        bytes[i] = in->p[(ply->format == FSI__PLY_BIG_ENDIAN) == host_big_endian ? i : size - 1 - i];
    *value = fsi__io_load_value(type, bytes);
    if (!fsi_is_finite(*value)) return fsi__io_refuse(in, FSI_ERROR_NAN, 0, "NaN or infinity");
    in->p += size;
    return FSI_OK;
}

/* The next number of a text file, which must fit its type. */
static fsi_status fsi__ply_ascii(fsi__ply *ply, fsi_io_type type, double *value)
{
    fsi__io_input *in = &ply->in, at;
    int fits;
    fsi__io_skip_blanks(in, 1);
    if (in->p == in->end) return fsi__ply_cut(ply);
    at = *in;
    FSI__TRY(fsi__io_number(in, value));
    if (type < FSI_IO_FLOAT)
        fits = *value >= fsi__io_types[type].lo && *value <= fsi__io_types[type].hi && *value == floor(*value);
    else fits = type == FSI_IO_DOUBLE || fsi_is_finite((double)(float)*value);
    return fits ? FSI_OK : fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, "does not fit its type");
}

static fsi_status fsi__ply_value(fsi__ply *ply, fsi_io_type type, double *value)
{
    return ply->in.binary ? fsi__ply_binary(ply, type, value) : fsi__ply_ascii(ply, type, value);
}

/* Passes over numbers of any value. */
static fsi_status fsi__ply_skip(fsi__ply *ply, fsi_io_type type, double count)
{
    fsi__io_input *in = &ply->in;
    if (in->binary) {
        if ((double)(in->end - in->p) < count * fsi__io_types[type].size) return fsi__ply_cut(ply);
        in->p += (size_t)count * (size_t)fsi__io_types[type].size;
        return FSI_OK;
    }
    for (; count > 0; count--) {
        fsi__io_skip_blanks(in, 1);
        if (in->p == in->end) return fsi__ply_cut(ply);
        in->p += fsi__io_token(in);
    }
    return FSI_OK;
}

static fsi_status fsi__ply_corner(fsi__ply *ply, double value)
{
    if (!(value >= 0 && value < 2147483647.0) || value != floor(value))
        return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, value, "a corner is negative or no whole number");
    return fsi__store_corner(ply->in.store, (int)value);
}

/* The texture coordinates of a face; a list of odd length is passed over. */
static fsi_status fsi__ply_texcoord(fsi__ply *ply, const fsi__ply_property *p, double count)
{
    double pair[2], k;
    fsi_status status = FSI_OK;
    if (count > 2 * FSI_IO_MAX_CORNERS || fmod(count, 2) != 0) return fsi__ply_skip(ply, p->type, count);
    for (k = 0; k < count && status == FSI_OK; k += 2) {
        FSI__TRY(fsi__ply_value(ply, p->type, &pair[0]));
        FSI__TRY(fsi__ply_value(ply, p->type, &pair[1]));
        if (!fsi_is_finite((double)(fsi_real)pair[0]) || !fsi_is_finite((double)(fsi_real)pair[1]))
            return fsi__io_refuse(&ply->in, FSI_ERROR_NAN, 0, "a texture coordinate is too large");
        status = fsi__store_uv(ply->in.store, pair[0], pair[1]);
    }
    return status;
}

static fsi_status fsi__ply_list(fsi__ply *ply, const fsi__ply_property *p)
{
    long long where = fsi__io_where(&ply->in);
    double count, value, k;
    fsi_status status;
    FSI__TRY(fsi__ply_value(ply, p->count_type, &count));
    if (count < 0) return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, count, "a list has a negative length");
    if (p->role == FSI__PLY_TEXCOORD && !ply->in.store->uv_per_vertex) return fsi__ply_texcoord(ply, p, count);
    if (p->role != FSI__PLY_CORNERS) return fsi__ply_skip(ply, p->type, count);
    if (count < 3) return fsi__io_refuse(&ply->in, FSI_ERROR_FORMAT, count, "a face has fewer than 3 corners");
    if (count > FSI_IO_MAX_CORNERS)
        return fsi__io_refuse(&ply->in, FSI_ERROR_LIMIT, count, "a polygon has too many corners (FSI_IO_MAX_CORNERS)");
    status = fsi__store_polygon(ply->in.store, where);
    for (k = 0; k < count && status == FSI_OK; k++) {
        status = fsi__ply_value(ply, p->type, &value);
        if (status == FSI_OK) status = fsi__ply_corner(ply, value);
    }
    return status;
}

static fsi_status fsi__ply_vertex_row(fsi__ply *ply, const fsi__ply_element *e, int row)
{
    fsi__io_store *s = ply->in.store;
    double x[5] = { 0, 0, 0, 0, 0 }, value;
    fsi_status status = FSI_OK;
    int i;
    for (i = e->first; i < e->end && status == FSI_OK; i++) {
        const fsi__ply_property *p = &ply->properties[i];
        if (p->is_list) { status = fsi__ply_list(ply, p); continue; }
        FSI__TRY(fsi__ply_value(ply, p->type, &value));
        if (p->role == FSI__PLY_ATTRIBUTE)
            fsi__io_store_value(p->type, s->values + p->offset + (size_t)row * (size_t)fsi__io_types[p->type].size,
                                value);
        else x[p->role - FSI__PLY_X] = value;
    }
    s->vertices[row] = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)x[2]);
    if (status == FSI_OK && !(fsi_v3_is_finite(s->vertices[row]) && fsi_is_finite((double)(fsi_real)x[3])
        && fsi_is_finite((double)(fsi_real)x[4])))
        return fsi__io_refuse(&ply->in, FSI_ERROR_NAN, 0, "a coordinate is too large");
    return status == FSI_OK && s->uv_per_vertex ? fsi__store_uv(s, x[3], x[4]) : status;
}

/* A row of a face, an edge or something unknown. */
static fsi_status fsi__ply_other_row(fsi__ply *ply, const fsi__ply_element *e)
{
    fsi_status status = FSI_OK;
    long long where = fsi__io_where(&ply->in);
    double edge[2] = { 0, 0 };
    fsi__io_store *s = ply->in.store;
    int i, is_edge = 0, corner = s->corner_count, uv = s->uv_count, n;

    /* Read the row's properties. */
    for (i = e->first; i < e->end && status == FSI_OK; i++) {
        const fsi__ply_property *p = &ply->properties[i];
        if (p->is_list) status = fsi__ply_list(ply, p);
        else if (p->role == FSI__PLY_SKIP) status = fsi__ply_skip(ply, p->type, 1);
        else {
            status = fsi__ply_value(ply, p->type, &edge[p->role - FSI__PLY_EDGE_START]);
            is_edge = 1;
        }
    }

    n = s->corner_count - corner;
    /* a pair for each corner: they belong together */
    if (status == FSI_OK && !s->uv_per_vertex && n > 0 && s->uv_count - uv == n)
        for (i = 0; i < n && status == FSI_OK; i++) status = fsi__store_corner_uv(s, corner + i, uv + i);
    else if (!s->uv_per_vertex) s->uv_count = uv;

    /* A row of edges: a polygon of two corners. */
    if (status != FSI_OK || !is_edge) return status;
    status = fsi__store_polygon(ply->in.store, where);
    for (i = 0; i < 2 && status == FSI_OK; i++) status = fsi__ply_corner(ply, edge[i]);
    return status;
}

static fsi_status fsi__ply_rows(fsi__ply *ply)
{
    const fsi__ply_element *e;
    fsi_status status = FSI_OK;
    double row;
    for (e = ply->elements; e < ply->elements + ply->element_count; e++) {
        int is_vertex = strcmp(e->name, "vertex") == 0;
        for (row = 0; row < e->count && status == FSI_OK; row++) {
            if (!ply->in.binary) fsi__io_skip_blanks(&ply->in, 1); /* so that errors name the line of the row */
            status = is_vertex ? fsi__ply_vertex_row(ply, e, (int)row) : fsi__ply_other_row(ply, e);
        }
    }
    return status;
}

FSI_API fsi_status fsi_io_read_ply(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size)
{
    fsi_status status = FSI_ERROR_MEMORY;
    fsi__io_input in;
    fsi__ply *ply;
    FSI__TRY(fsi__io_open(&in, mesh, context, data, size, "fsi_io_read_ply"));
    ply = (fsi__ply *)fsi__alloc(context, 1, sizeof *ply);
    if (ply) {
        ply->in = in;
        status = fsi__ply_header(ply);
        if (status == FSI_OK) status = fsi__ply_plan(ply);
        if (status == FSI_OK) status = fsi__ply_rows(ply);
        fsi__free(context, ply, 1, sizeof *ply);
    } else status = fsi__fail(context, FSI_ERROR_MEMORY, "fsi_io_read_ply", -1, 0, "no memory to start reading");
    return fsi__store_finish(in.store, status, mesh);
}

/* ---- >>nodes by their ids ------------------------------------------------------------------------------------- */

/* Rows of numbers, as TetGen and Gmsh write them: a row is a line, its elements name nodes by ids. */
typedef struct fsi__io_id {
    long long id, line;
    int vertex;
} fsi__io_id;

typedef struct fsi__io_nodes {
    fsi__io_id *rows; /* by rising id once fsi__nodes_sort has run */
    int count, capacity, unsorted;
} fsi__io_nodes;

/* Goes to the next row that was announced; blank lines and comments are passed over. */
static fsi_status fsi__io_row(fsi__io_input *in)
{
    for (fsi__io_skip_blanks(in, 1); in->p < in->end && *in->p == '#'; fsi__io_skip_blanks(in, 1))
        fsi__io_skip_line(in);
    if (in->p == in->end)
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends before the last row that it announces");
    if (*in->p == '$') return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "stands where a row is announced");
    return FSI_OK;
}

static fsi_status fsi__io_end_row(fsi__io_input *in)
{
    if (!fsi__io_at_end(in)) return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is more than the row should have");
    fsi__io_skip_line(in);
    return FSI_OK;
}

/* The next number of a row; `what` says what is wrong when it is not a whole number from lo to hi. */
static fsi_status fsi__io_whole(fsi__io_input *in, double lo, double hi, const char *what, double *value)
{
    fsi__io_input at;
    fsi__io_skip_blanks(in, 0);
    at = *in;
    FSI__TRY(fsi__io_number(in, value));
    if (*value >= lo && *value <= hi && *value == floor(*value)) return FSI_OK;
    return fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, what);
}

static fsi_status fsi__io_count(fsi__io_input *in, double *value)
{
    return fsi__io_whole(in, 0, 4294967295.0, "is no count", value);
}

static fsi_status fsi__io_id_of(fsi__io_input *in, double *value)
{
    return fsi__io_whole(in, -9007199254740991.0, 9007199254740991.0, "is no id: a whole number below 2^53", value);
}

static fsi_status fsi__io_region(fsi__io_input *in, double *value)
{
    return fsi__io_whole(in, -2147483648.0, 2147483647.0, "is no region: a whole number below 2^31", value);
}

/* Passes over numbers of any value. */
static fsi_status fsi__io_skip_numbers(fsi__io_input *in, double count)
{
    for (; count > 0; count--) {
        if (fsi__io_at_end(in)) return fsi__io_refuse(in, FSI_ERROR_FORMAT, count, "the row has too few numbers");
        in->p += fsi__io_token(in);
    }
    return FSI_OK;
}

/* The next number of a row is the id of `vertex`. */
static fsi_status fsi__nodes_take_id(fsi__io_input *in, fsi__io_nodes *nodes, int vertex)
{
    double id = 0;
    FSI__TRY(fsi__io_id_of(in, &id));
    FSI__TRY(fsi__store_reserve(in->store, &nodes->rows, sizeof *nodes->rows, nodes->count, 1, &nodes->capacity));
    nodes->rows[nodes->count].id = (long long)id;
    nodes->rows[nodes->count].line = in->line;
    nodes->rows[nodes->count].vertex = vertex;
    if (nodes->count > 0 && nodes->rows[nodes->count - 1].id >= (long long)id) nodes->unsorted = 1;
    nodes->count++;
    return FSI_OK;
}

/* The next numbers of a row are coordinates of a new vertex: 2 or 3. */
static fsi_status fsi__nodes_take_vertex(fsi__io_input *in, int coordinates)
{
    double x[3] = { 0, 0, 0 };
    fsi_vec3 v;
    int k;
    for (k = 0; k < coordinates; k++) {
        fsi__io_skip_blanks(in, 0);
        FSI__TRY(fsi__io_number(in, &x[k]));
    }
    v = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)x[2]);
    if (!fsi_v3_is_finite(v)) return fsi__io_refuse(in, FSI_ERROR_NAN, 0, "a coordinate is too large");
    return fsi__store_vertex(in->store, v);
}

/* By id, then by line. */
static int fsi__nodes_compare(const void *a, const void *b)
{
    const fsi__io_id *p = (const fsi__io_id *)a, *q = (const fsi__io_id *)b;
    if (p->id != q->id) return p->id < q->id ? -1 : 1;
    return p->line < q->line ? -1 : p->line > q->line;
}

/* Makes ready for fsi__nodes_take_corner; no id may appear twice. */
static fsi_status fsi__nodes_sort(const fsi__io_input *in, fsi__io_nodes *nodes)
{
    const fsi__io_store *s = in->store;
    int i;
    if (!nodes->unsorted) return FSI_OK;
    qsort(nodes->rows, (size_t)nodes->count, sizeof *nodes->rows, fsi__nodes_compare);
    for (i = 1; i < nodes->count; i++) {
        const fsi__io_id *p = &nodes->rows[i];
        if (p->id != p[-1].id) continue;
        return fsi__fail(s->context, FSI_ERROR_FORMAT, s->function, p->line, (double)p->id,
                         "%s %.0f: the node %.0f is in line %.0f already", s->unit, (double)p->line, (double)p->id,
                         (double)p[-1].line);
    }
    return FSI_OK;
}

/* The next number of a row names a node. */
static fsi_status fsi__nodes_take_corner(fsi__io_input *in, const fsi__io_nodes *nodes, int *vertex)
{
    fsi__io_input at;
    double id = 0;
    int begin = 0, end = nodes->count, middle;
    fsi__io_skip_blanks(in, 0);
    at = *in;
    FSI__TRY(fsi__io_id_of(in, &id));
    while (begin < end) { /* the first row whose id is not below */
        middle = begin + (end - begin) / 2;
        if ((double)nodes->rows[middle].id < id) begin = middle + 1;
        else end = middle;
    }
    if (begin == nodes->count || (double)nodes->rows[begin].id != id)
        return fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, "names no node");
    *vertex = nodes->rows[begin].vertex;
    return FSI_OK;
}

/* The next `nodes_of` numbers of a row are nodes of an element, the first 3 or 4 of them its corners. */
static fsi_status fsi__nodes_take_corners(fsi__io_input *in, const fsi__io_nodes *nodes, int corners, int nodes_of,
                                          int *corner)
{
    int k, other;
    for (k = 0; k < nodes_of; k++) FSI__TRY(fsi__nodes_take_corner(in, nodes, k < corners ? &corner[k] : &other));
    return FSI_OK;
}

/* An element of 3 or 4 corners that `line` gives. */
static fsi_status fsi__nodes_store(fsi__io_store *s, long long line, const int *corner, int corners, int region)
{
    int k;
    if (corners == 4) return fsi__store_tet(s, corner, region);
    FSI__TRY(fsi__store_polygon(s, line));
    for (k = 0; k < 3; k++) FSI__TRY(fsi__store_corner(s, corner[k]));
    return FSI_OK;
}

/* ---- >>tetgen reader ------------------------------------------------------------------------------------------ */

/* Nothing but blank lines and comments may follow the last row. */
static fsi_status fsi__tetgen_end(fsi__io_input *in)
{
    while (in->p < in->end) {
        if (!fsi__io_at_end(in))
            return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "stands after the last row that the file announces");
        fsi__io_skip_line(in);
    }
    return FSI_OK;
}

/* rows dimension [attributes [markers]], then rows: id x y [z] attributes markers */
static fsi_status fsi__tetgen_nodes(fsi__io_input *in, fsi__io_nodes *nodes, int *dimension)
{
    fsi__io_store *s = in->store;
    double rows = 0, value = 0, more = 0, row;
    int k;

    /* The header. */
    FSI__TRY(fsi__io_row(in));
    FSI__TRY(fsi__io_count(in, &rows));
    FSI__TRY(fsi__io_whole(in, 2, 3, "is no dimension: 2 or 3", &value));
    *dimension = (int)value;
    for (k = 0; k < 2 && !fsi__io_at_end(in); k++, more += value) FSI__TRY(fsi__io_count(in, &value));
    FSI__TRY(fsi__io_end_row(in));
    FSI__TRY(fsi__io_announced(in, 2 * rows * (1 + *dimension + more) - 1));

    /* The rows. */
    FSI__TRY(fsi__store_reserve(s, &s->vertices, sizeof *s->vertices, 0, (long long)rows, &s->vertex_capacity));
    for (row = 0; row < rows; row++) {
        FSI__TRY(fsi__io_row(in));
        FSI__TRY(fsi__nodes_take_id(in, nodes, s->vertex_count));
        FSI__TRY(fsi__nodes_take_vertex(in, *dimension));
        FSI__TRY(fsi__io_skip_numbers(in, more));
        FSI__TRY(fsi__io_end_row(in));
    }
    FSI__TRY(fsi__tetgen_end(in));
    return fsi__nodes_sort(in, nodes);
}

/* rows nodes [attributes], then rows: id nodes attributes */
static fsi_status fsi__tetgen_elements(fsi__io_input *in, const fsi__io_nodes *nodes, int dimension)
{
    fsi__io_store *s = in->store;
    fsi__io_input at;
    const int corners = dimension + 1; /* second order: 3 or 6 nodes more, on the edges */
    double rows = 0, nodes_of = 0, attributes = 0, value = 0, row;
    int corner[4];

    /* The header. */
    FSI__TRY(fsi__io_row(in));
    FSI__TRY(fsi__io_count(in, &rows));
    fsi__io_skip_blanks(in, 0);
    at = *in;
    FSI__TRY(fsi__io_count(in, &nodes_of));
    if (nodes_of != corners && nodes_of != corners + (corners == 4 ? 6 : 3))
        return fsi__io_refuse_token(&at, FSI_ERROR_FORMAT, corners == 4 ? "nodes an element: must be 4 or 10"
                                    : "nodes an element: must be 3 or 6, in two dimensions");
    if (!fsi__io_at_end(in)) FSI__TRY(fsi__io_count(in, &attributes));
    FSI__TRY(fsi__io_end_row(in));
    FSI__TRY(fsi__io_announced(in, 2 * rows * (1 + nodes_of + attributes) - 1));
    s->has_regions = attributes > 0;

    /* The rows. */
    for (row = 0; row < rows; row++) {
        long long line;
        FSI__TRY(fsi__io_row(in));
        line = in->line;
        FSI__TRY(fsi__io_id_of(in, &value));
        FSI__TRY(fsi__nodes_take_corners(in, nodes, corners, (int)nodes_of, corner));
        value = 0;
        if (attributes > 0 && corners == 4) FSI__TRY(fsi__io_region(in, &value));
        FSI__TRY(fsi__io_skip_numbers(in, attributes - (attributes > 0 && corners == 4)));
        FSI__TRY(fsi__io_end_row(in));
        FSI__TRY(fsi__nodes_store(s, line, corner, corners, (int)value));
    }
    return fsi__tetgen_end(in);
}

FSI_API fsi_status fsi_io_read_tetgen(fsi_io_mesh *mesh, fsi_context *context, const void *node_data, size_t node_size,
                                      const void *ele_data, size_t ele_size)
{
    static const char fn[] = "fsi_io_read_tetgen";
    fsi__io_input in;
    fsi__io_nodes nodes;
    fsi_status status;
    int dimension = 3;
    FSI__TRY(fsi__io_open(&in, mesh, context, node_data, node_size, fn));
    memset(&nodes, 0, sizeof nodes);
    in.store->unit = ".node line";
    status = ele_data ? fsi__tetgen_nodes(&in, &nodes, &dimension)
                      : fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "ele_data is NULL");
    if (status == FSI_OK) {
        in.store->unit = ".ele line";
        in.begin = in.p = (const unsigned char *)ele_data;
        in.end = in.begin + ele_size;
        in.line = 1;
        status = fsi__tetgen_elements(&in, &nodes, dimension);
    }
    fsi__free(context, nodes.rows, (size_t)nodes.capacity, sizeof *nodes.rows);
    return fsi__store_finish(in.store, status, mesh);
}

/* ---- >>gmsh reader -------------------------------------------------------------------------------------------- */

/* Sections from $Name to $EndName. Version 2.2 has the rows of a section at once, 4.1 in blocks (Gmsh reference manual,
   "Gmsh file formats"):
      2.2  $Nodes     rows; id x y z                     $Elements  rows; id type tags tag.. node..
      4.1  $Nodes     blocks rows least most;            $Elements  blocks rows least most;
           dim entity parametric n; n ids; n times x y z [u [v [w]]]    dim entity type n; n times id node.. */
typedef struct fsi__gmsh {
    fsi__io_input in;
    fsi__io_nodes nodes;
    int in_blocks; /* 4.1 */
    int has_nodes, has_elements;
} fsi__gmsh;

/* Takes the name of a section with its line. */
static fsi_status fsi__gmsh_take_name(fsi__io_input *in)
{
    in->p += fsi__io_token(in);
    return fsi__io_end_row(in);
}

/* The line $EndName of a section whose rows have all been read. */
static fsi_status fsi__gmsh_close(fsi__io_input *in, const char *name, const char *text)
{
    fsi__io_skip_blanks(in, 1);
    if (in->p == in->end) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends inside a section");
    if (!fsi__io_token_is(in->p, fsi__io_token(in), name)) return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, text);
    return fsi__gmsh_take_name(in);
}

/* $MeshFormat: version, 0 for ascii or 1 for binary, bytes of a number in binary */
static fsi_status fsi__gmsh_format(fsi__gmsh *g)
{
    fsi__io_input *in = &g->in;
    if (!fsi__io_token_is(in->p, fsi__io_token(in), "$MeshFormat"))
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file does not start with $MeshFormat");
    FSI__TRY(fsi__gmsh_take_name(in));
    FSI__TRY(fsi__io_row(in));
    g->in_blocks = fsi__io_token_is(in->p, fsi__io_token(in), "4.1");
    if (!g->in_blocks && !fsi__io_token_is(in->p, fsi__io_token(in), "2.2"))
        return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no version that is read: save it as 2.2 or 4.1");
    in->p += fsi__io_token(in);
    fsi__io_skip_blanks(in, 0);
    if (fsi__io_token_is(in->p, fsi__io_token(in), "1"))
        return fsi__io_refuse(in, FSI_ERROR_FORMAT, 1, "a binary Gmsh file: save it as ASCII");
    if (!fsi__io_token_is(in->p, fsi__io_token(in), "0"))
        return fsi__io_refuse_token(in, FSI_ERROR_FORMAT, "is no file type: 0 for ASCII");
    FSI__TRY(fsi__io_skip_numbers(in, 2));
    FSI__TRY(fsi__io_end_row(in));
    return fsi__gmsh_close(in, "$EndMeshFormat", "stands where $EndMeshFormat should");
}

/* The first row of a section, and whether its rows of `numbers` numbers at least fit into the file. */
static fsi_status fsi__gmsh_header(fsi__gmsh *g, int numbers, double *blocks, double *rows)
{
    fsi__io_input *in = &g->in;
    *blocks = 1;
    FSI__TRY(fsi__gmsh_take_name(in));
    FSI__TRY(fsi__io_row(in));
    if (g->in_blocks) FSI__TRY(fsi__io_count(in, blocks));
    FSI__TRY(fsi__io_count(in, rows));
    if (g->in_blocks) FSI__TRY(fsi__io_skip_numbers(in, 2));
    FSI__TRY(fsi__io_end_row(in));
    return fsi__io_announced(in, 2 * *rows * numbers - 1);
}

/* dim entity parametric n, or dim entity type n; at most `left` rows. *where: at the third number, for errors. */
static fsi_status fsi__gmsh_block(fsi__io_input *in, double left, double *entity, double *third, fsi__io_input *where,
                                  double *n)
{
    double dimension;
    FSI__TRY(fsi__io_row(in));
    FSI__TRY(fsi__io_whole(in, 0, 3, "is no dimension: 0 to 3", &dimension));
    FSI__TRY(fsi__io_region(in, entity));
    fsi__io_skip_blanks(in, 0);
    *where = *in;
    FSI__TRY(fsi__io_count(in, third));
    FSI__TRY(fsi__io_whole(in, 0, left, "rows are more than the section announces", n));
    return fsi__io_end_row(in);
}

static fsi_status fsi__gmsh_missing_rows(const fsi__io_input *in, double left)
{
    if (left == 0) return FSI_OK;
    return fsi__io_refuse(in, FSI_ERROR_FORMAT, left, "the blocks have fewer rows than the section announces");
}

/* n rows of nodes; in blocks their ids come first, and coordinates on the entity follow when `parametric`. */
static fsi_status fsi__gmsh_node_rows(fsi__gmsh *g, int n, int parametric)
{
    fsi__io_input *in = &g->in;
    int k, first = in->store->vertex_count;
    for (k = 0; k < n && g->in_blocks; k++) {
        FSI__TRY(fsi__io_row(in));
        FSI__TRY(fsi__nodes_take_id(in, &g->nodes, first + k));
        FSI__TRY(fsi__io_end_row(in));
    }
    for (k = 0; k < n; k++) {
        FSI__TRY(fsi__io_row(in));
        if (!g->in_blocks) FSI__TRY(fsi__nodes_take_id(in, &g->nodes, first + k));
        FSI__TRY(fsi__nodes_take_vertex(in, 3));
        if (parametric) fsi__io_skip_line(in);
        else FSI__TRY(fsi__io_end_row(in));
    }
    return FSI_OK;
}

static fsi_status fsi__gmsh_nodes(fsi__gmsh *g)
{
    fsi__io_input *in = &g->in, where;
    fsi__io_store *s = in->store;
    double blocks, left, entity, parametric = 0, n;
    if (g->has_nodes) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the section $Nodes appears twice");
    g->has_nodes = 1;
    FSI__TRY(fsi__gmsh_header(g, 4, &blocks, &left));
    FSI__TRY(fsi__store_reserve(s, &s->vertices, sizeof *s->vertices, 0, (long long)left, &s->vertex_capacity));
    for (n = left; blocks > 0; blocks--, left -= n) {
        if (g->in_blocks) FSI__TRY(fsi__gmsh_block(in, left, &entity, &parametric, &where, &n));
        FSI__TRY(fsi__gmsh_node_rows(g, (int)n, parametric > 0));
    }
    FSI__TRY(fsi__gmsh_missing_rows(in, left));
    FSI__TRY(fsi__gmsh_close(in, "$EndNodes", "stands where $EndNodes should"));
    return fsi__nodes_sort(in, &g->nodes);
}

/* Nodes and corners of an element type; corners: 0 when the type is read over. */
static fsi_status fsi__gmsh_type(const fsi__io_input *where, double type, int *nodes_of, int *corners)
{
    static const unsigned char counts[20] = { 0, 2, 3, 4, 4, 8, 6, 5, 3, 6, 9, 10, 27, 18, 14, 1, 8, 20, 15, 13 };
    *nodes_of = *corners = 0;
    if (!(type >= 1 && type <= 19))
        return fsi__io_refuse_token(where, FSI_ERROR_FORMAT, "is no type of element that is known: 1 to 19");
    *nodes_of = counts[(int)type];
    *corners = type == 2 || type == 9 ? 3 : type == 4 || type == 11 ? 4 : 0;
    return FSI_OK;
}

/* node.. */
static fsi_status fsi__gmsh_element(fsi__gmsh *g, int nodes_of, int corners, double region)
{
    fsi__io_input *in = &g->in;
    const long long line = in->line;
    int corner[4];
    if (corners == 0) FSI__TRY(fsi__io_skip_numbers(in, nodes_of));
    else FSI__TRY(fsi__nodes_take_corners(in, &g->nodes, corners, nodes_of, corner));
    FSI__TRY(fsi__io_end_row(in));
    return corners == 0 ? FSI_OK : fsi__nodes_store(in->store, line, corner, corners, (int)region);
}

/* id type tags tag.. node.. */
static fsi_status fsi__gmsh_tagged_element(fsi__gmsh *g)
{
    fsi__io_input *in = &g->in, where;
    double id, type, tags, region = 0;
    int nodes_of, corners;
    FSI__TRY(fsi__io_row(in));
    FSI__TRY(fsi__io_id_of(in, &id));
    fsi__io_skip_blanks(in, 0);
    where = *in;
    FSI__TRY(fsi__io_count(in, &type));
    FSI__TRY(fsi__gmsh_type(&where, type, &nodes_of, &corners));
    FSI__TRY(fsi__io_count(in, &tags));
    if (tags > 0) FSI__TRY(fsi__io_region(in, &region));
    FSI__TRY(fsi__io_skip_numbers(in, tags - 1));
    if (tags > 0 && corners == 4) in->store->has_regions = 1;
    return fsi__gmsh_element(g, nodes_of, corners, region);
}

/* dim entity type n, then n rows: id node.. */
static fsi_status fsi__gmsh_element_block(fsi__gmsh *g, double left, double *n)
{
    fsi__io_input *in = &g->in, where;
    double type, region, id, k;
    int nodes_of, corners;
    FSI__TRY(fsi__gmsh_block(in, left, &region, &type, &where, n));
    FSI__TRY(fsi__gmsh_type(&where, type, &nodes_of, &corners));
    for (k = 0; k < *n; k++) {
        FSI__TRY(fsi__io_row(in));
        FSI__TRY(fsi__io_id_of(in, &id));
        FSI__TRY(fsi__gmsh_element(g, nodes_of, corners, region));
    }
    if (*n > 0 && corners == 4) in->store->has_regions = 1;
    return FSI_OK;
}

static fsi_status fsi__gmsh_elements(fsi__gmsh *g)
{
    fsi__io_input *in = &g->in;
    double blocks, left, n = 1;
    if (!g->has_nodes) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "$Elements stands before $Nodes");
    if (g->has_elements) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the section $Elements appears twice");
    g->has_elements = 1;
    FSI__TRY(fsi__gmsh_header(g, g->in_blocks ? 2 : 4, &blocks, &left));
    for (; g->in_blocks && blocks > 0; blocks--, left -= n) FSI__TRY(fsi__gmsh_element_block(g, left, &n));
    for (; !g->in_blocks && left > 0; left--) FSI__TRY(fsi__gmsh_tagged_element(g));
    FSI__TRY(fsi__gmsh_missing_rows(in, left));
    return fsi__gmsh_close(in, "$EndElements", "stands where $EndElements should");
}

/* A section that is read over. */
static fsi_status fsi__gmsh_skip(fsi__io_input *in)
{
    const fsi__io_input start = *in;
    const unsigned char *name = in->p + 1;
    size_t n = fsi__io_token(in), end;
    for (fsi__io_skip_line(in); in->p < in->end; fsi__io_skip_line(in)) {
        fsi__io_skip_blanks(in, 1);
        end = fsi__io_token(in);
        if (end == n + 3 && memcmp(in->p, "$End", 4) == 0 && memcmp(in->p + 4, name, n - 1) == 0)
            return fsi__gmsh_take_name(in);
    }
    return fsi__io_refuse_token(&start, FSI_ERROR_FORMAT, "is a section without an end");
}

static fsi_status fsi__gmsh_sections(fsi__gmsh *g)
{
    fsi__io_input *in = &g->in;
    FSI__TRY(fsi__gmsh_format(g));
    for (;;) {
        size_t n;
        fsi__io_skip_blanks(in, 1);
        if (in->p == in->end) break;
        n = fsi__io_token(in);
        if (fsi__io_token_is(in->p, n, "$Nodes")) FSI__TRY(fsi__gmsh_nodes(g));
        else if (fsi__io_token_is(in->p, n, "$Elements")) FSI__TRY(fsi__gmsh_elements(g));
        else if (*in->p == '$') FSI__TRY(fsi__gmsh_skip(in));
        else fsi__io_skip_line(in);
    }
    if (!g->has_nodes) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends without a section $Nodes");
    if (!g->has_elements) return fsi__io_refuse(in, FSI_ERROR_FORMAT, 0, "the file ends without a section $Elements");
    return FSI_OK;
}

FSI_API fsi_status fsi_io_read_gmsh(fsi_io_mesh *mesh, fsi_context *context, const void *data, size_t size)
{
    fsi__gmsh g;
    fsi_status status;
    memset(&g, 0, sizeof g);
    FSI__TRY(fsi__io_open(&g.in, mesh, context, data, size, "fsi_io_read_gmsh"));
    status = fsi__gmsh_sections(&g);
    fsi__free(context, g.nodes.rows, (size_t)g.nodes.capacity, sizeof *g.nodes.rows);
    return fsi__store_finish(g.in.store, status, mesh);
}

/* ---- >>files -------------------------------------------------------------------------------------------------- */

typedef struct fsi__io_bytes { unsigned char *data; size_t size, capacity; } fsi__io_bytes;

/* Reads to the end, doubling the buffer: works for files of unknown size (pipes), too. */
static fsi_status fsi__io_slurp(fsi_context *context, FILE *file, const char *path, fsi__io_bytes *b)
{
    static const char fn[] = "fsi_io_read_mesh";
    size_t n;
    do {
        if (b->size == b->capacity) {
            size_t fresh = b->capacity ? b->capacity : 65536;
            unsigned char *grown = NULL;
            if (fresh <= (size_t)-1 - b->capacity) grown = (unsigned char *)fsi__alloc(context, fresh + b->capacity, 1);
            if (!grown)
                return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, (double)fresh, "no memory to read '%.150s'", path);
            if (b->size > 0) memcpy(grown, b->data, b->size);
            fsi__free(context, b->data, b->capacity, 1);
            b->data = grown;
            b->capacity += fresh;
        }
        n = fread(b->data + b->size, 1, b->capacity - b->size, file);
        b->size += n;
    } while (n > 0);
    if (!ferror(file)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_IO, fn, (long long)b->size, 0, "reading '%.150s' failed", path);
}

static fsi_status fsi__io_load(fsi_context *context, const char *path, fsi__io_bytes *b)
{
    fsi_status status;
    FILE *file = fopen(path, "rb");
    if (!file) return fsi__fail(context, FSI_ERROR_IO, "fsi_io_read_mesh", -1, 0, "cannot open '%.150s'", path);
    status = fsi__io_slurp(context, file, path, b);
    fclose(file);
    return status;
}

/* Does the path end so, with more before it? */
static int fsi__io_ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n > k && strcmp(path + n - k, end) == 0;
}

/* Both files of a pair, from the path of either. */
static fsi_status fsi__io_read_pair(fsi_io_mesh *mesh, fsi_context *context, const char *path)
{
    const size_t room = strlen(path) + 2; /* .node is longer than .ele by one */
    const char *dot = strrchr(path, '.');
    const int is_node = fsi__io_ends_in(path, ".node");
    fsi__io_bytes node, ele;
    fsi_status status;
    char *other = (char *)fsi__alloc(context, room, 1);
    if (!other)
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_io_read_mesh", -1, (double)room, "no memory to read '%.150s'",
                         path);
    memcpy(other, path, (size_t)(dot - path));
    strcpy(other + (dot - path), is_node ? ".ele" : ".node");
    memset(&node, 0, sizeof node);
    memset(&ele, 0, sizeof ele);
    status = fsi__io_load(context, is_node ? path : other, &node);
    if (status == FSI_OK) status = fsi__io_load(context, is_node ? other : path, &ele);
    if (status == FSI_OK) status = fsi_io_read_tetgen(mesh, context, node.data, node.size, ele.data, ele.size);
    fsi__free(context, ele.data, ele.capacity, 1);
    fsi__free(context, node.data, node.capacity, 1);
    fsi__free(context, other, room, 1);
    return status;
}

FSI_API fsi_status fsi_io_read_mesh(fsi_io_mesh *mesh, fsi_context *context, const char *path)
{
    static const char fn[] = "fsi_io_read_mesh";
    fsi__io_bytes b;
    fsi_status status;
    if (!mesh) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "mesh is NULL");
    *mesh = fsi_io_default_mesh();
    if (!path) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "path is NULL");
    if (fsi__io_ends_in(path, ".node") || fsi__io_ends_in(path, ".ele"))
        return fsi__io_read_pair(mesh, context, path);
    memset(&b, 0, sizeof b);
    status = fsi__io_load(context, path, &b);
    if (status == FSI_OK) {
        int is_ply = b.size > 3 && memcmp(b.data, "ply", 3) == 0 && fsi__io_is_break(b.data[3]);
        int is_gmsh = b.size > 11 && memcmp(b.data, "$MeshFormat", 11) == 0;
        status = is_ply ? fsi_io_read_ply(mesh, context, b.data, b.size)
            : is_gmsh ? fsi_io_read_gmsh(mesh, context, b.data, b.size)
                      : fsi_io_read_obj(mesh, context, b.data, b.size);
    }
    fsi__free(context, b.data, b.capacity, 1);
    return status;
}

/* ---- >>output ------------------------------------------------------------------------------------------------- */

/* All writers go through one buffer. The first failure sticks in `status`; what follows is dropped. */
typedef struct fsi__io_writer {
    fsi_io_out out;
    const char *function;
    FILE *file;
    fsi_status status;
    size_t used;
    unsigned char buffer[8192];
} fsi__io_writer;

FSI_API fsi_io_out fsi_io_to_file(fsi_context *context, const char *path)
{
    fsi_io_out out;
    memset(&out, 0, sizeof out);
    out.context = context;
    out.path = path;
    return out;
}

FSI_API fsi_io_out fsi_io_to_function(fsi_context *context, fsi_io_write_fn *write, void *user)
{
    fsi_io_out out = fsi_io_to_file(context, NULL);
    out.write = write;
    out.user = user;
    return out;
}

static void fsi__io_attach(fsi__io_writer *w, fsi_io_out out, FILE *file, const char *function)
{
    w->out = out;
    w->function = function;
    w->file = file;
    w->status = FSI_OK;
    w->used = 0;
}

static fsi_status fsi__io_begin(fsi__io_writer *w, fsi_io_out out, const char *function)
{
    if (!fsi__is_context(out.context)) return FSI_ERROR_COOKIE;
    if (!out.path && !out.write)
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, function, -1, 0,
                         "neither a path nor a write function is given");
    fsi__io_attach(w, out, out.path ? fopen(out.path, "wb") : NULL, function);
    if (out.path && !w->file)
        return fsi__fail(out.context, FSI_ERROR_IO, function, -1, 0, "cannot create '%.150s'", out.path);
    return FSI_OK;
}

static fsi_status fsi__io_short_write(fsi__io_writer *w)
{
    if (w->status != FSI_OK) return w->status;
    w->status = fsi__fail(w->out.context, FSI_ERROR_IO, w->function, -1, 0, "writing '%.120s' failed: no space?",
                          w->out.path ? w->out.path : "(function)");
    return w->status;
}

static void fsi__io_flush(fsi__io_writer *w)
{
    size_t done;
    if (w->status == FSI_OK && w->used > 0) {
        done = w->file ? fwrite(w->buffer, 1, w->used, w->file) : w->out.write(w->out.user, w->buffer, w->used);
        if (done != w->used) fsi__io_short_write(w);
    }
    w->used = 0;
}

static void fsi__io_put(fsi__io_writer *w, const void *data, size_t size)
{
    const unsigned char *p = (const unsigned char *)data;
    while (size > 0) {
        size_t room = sizeof w->buffer - w->used, n = size < room ? size : room;
        memcpy(w->buffer + w->used, p, n);
        w->used += n;
        p += n;
        size -= n;
        if (w->used == sizeof w->buffer) fsi__io_flush(w);
    }
}

static fsi_status fsi__io_end(fsi__io_writer *w)
{
    fsi__io_flush(w);
    if (w->file && fclose(w->file) != 0) fsi__io_short_write(w);
    return w->status;
}

/* ---- >>numbers out -------------------------------------------------------------------------------------------- */

static void fsi__put_text(fsi__io_writer *w, const char *text) { fsi__io_put(w, text, strlen(text)); }

/* printf of integers and short strings; what may have a point goes through fsi__put_number. */
static void fsi__put_format(fsi__io_writer *w, const char *format, ...) FSI__PRINTF(2, 3);
static void fsi__put_format(fsi__io_writer *w, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fsi__put_text(w, text);
}

static void fsi__put_number(fsi__io_writer *w, double x, int single)
{
    char text[64];
    fsi__io_put(w, text, (size_t)fsi__format_number(text, sizeof text, x, single));
}

/* A number of 1, 2, 4 or 8 bytes in this machine's order, as little endian. */
static void fsi__put_le(fsi__io_writer *w, const void *p, int size)
{
    unsigned char bytes[8];
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    uint8_t v1;
    int i;
    switch (size) {
    case 1: memcpy(&v1, p, 1); v8 = v1; break;
    case 2: memcpy(&v2, p, 2); v8 = v2; break;
    case 4: memcpy(&v4, p, 4); v8 = v4; break;
    default: memcpy(&v8, p, 8);
    }
    for (i = 0; i < size; i++) bytes[i] = (unsigned char)(v8 >> 8 * i & 255);
    fsi__io_put(w, bytes, (size_t)size);
}

static void fsi__put_int(fsi__io_writer *w, int value)
{
    int32_t v = (int32_t)value;
    fsi__put_le(w, &v, 4);
}

/* A number of the given type as text or in binary. */
static void fsi__put_item(fsi__io_writer *w, int ascii, fsi_io_type type, const void *p)
{
    if (!ascii) fsi__put_le(w, p, fsi__io_types[type].size);
    else if (type >= FSI_IO_FLOAT) fsi__put_number(w, fsi__io_load_value(type, p), type == FSI_IO_FLOAT);
    else fsi__put_format(w, "%.0f", fsi__io_load_value(type, p));
}

static fsi_io_type fsi__position_type(int flags) { return flags & FSI_IO_SINGLE ? FSI_IO_FLOAT : FSI_IO_REAL; }

static void fsi__put_position(fsi__io_writer *w, fsi_vec3 x, int flags)
{
    fsi_real c[3];
    int k;
    c[0] = x.x;
    c[1] = x.y;
    c[2] = x.z;
    for (k = 0; k < 3; k++) {
        float single = (float)c[k];
        if (flags & FSI_IO_ASCII && k > 0) fsi__put_text(w, " ");
        if (flags & FSI_IO_SINGLE) fsi__put_item(w, flags & FSI_IO_ASCII, FSI_IO_FLOAT, &single);
        else fsi__put_item(w, flags & FSI_IO_ASCII, FSI_IO_REAL, &c[k]);
    }
}

/* ---- >>what may be written ------------------------------------------------------------------------------------ */

static fsi_status fsi__check_positions(fsi_context *context, const fsi_vec3 *x, int count, int single, const char *fn)
{
    int i;
    if (count < 0 || (count > 0 && !x))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, count,
                         "%d vertices, but the array is NULL or the count negative", count);
    for (i = 0; i < count; i++) {
        fsi_vec3 p = x[i];
        if (single) p = fsi_v3((fsi_real)(float)p.x, (fsi_real)(float)p.y, (fsi_real)(float)p.z);
        if (!fsi_v3_is_finite(p))
            return fsi__fail(context, FSI_ERROR_NAN, fn, i, (double)x[i].x, "vertex %d is not finite, or too large", i);
    }
    return FSI_OK;
}

static fsi_status fsi__check_indices(fsi_context *context, const int *index, int corners, int count, int vertex_count,
                                     const char *what, const char *fn)
{
    int i, k;
    if (count < 0 || (count > 0 && !index))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, count,
                         "%d %ss, but the array is NULL or the count negative", count, what);
    if (count > 0x7FFFFFFF / corners)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, count, "%d %ss have more than 2^31 corners", count, what);
    for (i = 0; i < count; i++)
        for (k = 0; k < corners; k++)
            if (index[corners * i + k] < 0 || index[corners * i + k] >= vertex_count)
                return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i, index[corners * i + k],
                                 "%s %d has vertex %d of %d", what, i, index[corners * i + k], vertex_count);
    return FSI_OK;
}

/* Not empty, and of printable ASCII that XML takes as it is; a name has no blank, apostrophe or backslash either. */
static int fsi__is_plain(const char *text, size_t longest, int is_name)
{
    size_t n;
    for (n = 0; text && text[n]; n++) {
        char c = text[n];
        if (n == longest || c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' || c == '"') return 0;
        /* a line that ends in \ goes on in PLY as it is read */
        if (is_name && (c == ' ' || c == '\'' || c == '\\')) return 0;
    }
    return n > 0;
}

static fsi_status fsi__check_attribute(fsi_context *context, const fsi_io_attribute *a, int index, int vertex_count,
                                       const char *fn)
{
    /* x, y, z are taken */
    if (!fsi__is_plain(a->name, 60, 1) || (a->name[0] >= 'x' && a->name[0] <= 'z' && !a->name[1]))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, 0, "the name of attribute %d cannot be written",
            index);
    if ((int)a->type < 0 || a->type >= FSI_IO_TYPE_COUNT || a->components < 1 || a->components > 9)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, a->components,
                         "attribute '%s' has an unknown type or not 1 to 9 components", a->name);
    if (!a->data && vertex_count > 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, 0, "attribute '%s' has no data", a->name);
    return FSI_OK;
}

static fsi_status fsi__check_uv(fsi_context *context, const fsi_io_mesh *m, int single, const char *fn)
{
    int i;
    if (m->uv_count < 0 || (m->uv_count > 0 && !m->uv))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, m->uv_count,
                         "%d texture coordinates, but the array is NULL or the count negative", m->uv_count);
    if (m->uv_count > 0 && !m->triangle_uv && m->uv_count != m->vertex_count)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, m->uv_count,
                         "%d texture coordinates for %d vertices, and triangle_uv is NULL", m->uv_count,
                             m->vertex_count);
    for (i = 0; i < 2 * m->uv_count; i++) {
        double x = (double)m->uv[i];
        if (!fsi_is_finite(x) || (single && !fsi_is_finite((double)(float)x)))
            return fsi__fail(context, FSI_ERROR_NAN, fn, i / 2, x, "texture coordinate %d is not finite, or too large",
                i / 2);
    }
    for (i = 0; m->triangle_uv && i < 3 * m->triangle_count; i++)
        if (m->triangle_uv[i] < -1 || m->triangle_uv[i] >= m->uv_count)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i / 3, m->triangle_uv[i],
                             "triangle %d has texture coordinate %d of %d", i / 3, m->triangle_uv[i], m->uv_count);
    return FSI_OK;
}

static fsi_status fsi__io_check_mesh(fsi_context *context, const fsi_io_mesh *m, int flags, const char *fn)
{
    fsi_status status;
    int i;
    if (!m) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "mesh is NULL");
    if (m->cookie != FSI__COOKIE('i', fsi_io_mesh))
        return fsi__fail(context, FSI_ERROR_COOKIE, fn, -1, 0,
                         "the mesh was not filled by fsi_io_default_mesh of this version and precision");
    if (flags & ~(FSI_IO_ASCII | FSI_IO_SINGLE))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, flags, "unknown flags in %d", flags);
    if (m->attribute_count < 0 || (m->attribute_count > 0 && !m->attributes))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, m->attribute_count,
                         "%d attributes, but the array is NULL or the count negative", m->attribute_count);
    status = fsi__check_positions(context, m->vertices, m->vertex_count, flags & FSI_IO_SINGLE, fn);
    if (status == FSI_OK)
        status = fsi__check_indices(context, m->triangles, 3, m->triangle_count, m->vertex_count, "triangle", fn);
    if (status == FSI_OK)
        status = fsi__check_indices(context, m->segments, 2, m->segment_count, m->vertex_count, "segment", fn);
    if (status == FSI_OK) status = fsi__check_uv(context, m, flags & FSI_IO_SINGLE, fn);
    for (i = 0; i < m->attribute_count && status == FSI_OK; i++)
        status = fsi__check_attribute(context, &m->attributes[i], i, m->vertex_count, fn);
    return status;
}

/* Checks the mesh and opens the destination. */
static fsi_status fsi__begin_mesh(fsi__io_writer *w, fsi_io_out out, const fsi_io_mesh *mesh, int flags, const char *fn)
{
    fsi_status status = fsi__io_check_mesh(out.context, mesh, flags, fn);
    return status == FSI_OK ? fsi__io_begin(w, out, fn) : status;
}

/* ---- >>obj and ply writers ------------------------------------------------------------------------------------ */

static void fsi__put_uv(fsi__io_writer *w, const fsi_io_mesh *m, int uv, int flags)
{
    int k;
    for (k = 0; k < 2; k++) {
        fsi_real x = uv < 0 ? 0 : m->uv[2 * (size_t)uv + (size_t)k];
        float single = (float)x;
        if (flags & FSI_IO_ASCII) fsi__put_text(w, " ");
        if (flags & FSI_IO_SINGLE) fsi__put_item(w, flags & FSI_IO_ASCII, FSI_IO_FLOAT, &single);
        else fsi__put_item(w, flags & FSI_IO_ASCII, FSI_IO_REAL, &x);
    }
}

/* The texture coordinate of corner k of a triangle, -1 none. */
static int fsi__uv_of(const fsi_io_mesh *m, int triangle, int k)
{
    const size_t at = 3 * (size_t)triangle + (size_t)k;
    if (m->uv_count == 0) return -1;
    return m->triangle_uv ? m->triangle_uv[at] : m->triangles[at];
}

static int fsi__has_uv(const fsi_io_mesh *m, int triangle) /* at all its corners? */
{
    return fsi__uv_of(m, triangle, 0) >= 0 && fsi__uv_of(m, triangle, 1) >= 0 && fsi__uv_of(m, triangle, 2) >= 0;
}

static void fsi__obj_put_face(fsi__io_writer *w, const fsi_io_mesh *m, int triangle)
{
    const int *t = m->triangles + 3 * (size_t)triangle, mapped = fsi__has_uv(m, triangle);
    int k;
    fsi__put_text(w, "f");
    for (k = 0; k < 3; k++) {
        fsi__put_format(w, " %.0f", t[k] + 1.0);
        if (mapped) fsi__put_format(w, "/%.0f", fsi__uv_of(m, triangle, k) + 1.0);
    }
    fsi__put_text(w, "\n");
}

FSI_API fsi_status fsi_io_write_obj(fsi_io_out out, const fsi_io_mesh *mesh, int flags)
{
    fsi__io_writer w;
    int i;
    FSI__TRY(fsi__begin_mesh(&w, out, mesh, flags, "fsi_io_write_obj"));
    for (i = 0; i < mesh->vertex_count; i++) {
        fsi__put_text(&w, "v ");
        fsi__put_position(&w, mesh->vertices[i], flags | FSI_IO_ASCII);
        fsi__put_text(&w, "\n");
    }
    for (i = 0; i < mesh->uv_count; i++) {
        fsi__put_text(&w, "vt");
        fsi__put_uv(&w, mesh, i, flags | FSI_IO_ASCII);
        fsi__put_text(&w, "\n");
    }
    for (i = 0; i < mesh->triangle_count; i++) fsi__obj_put_face(&w, mesh, i);
    for (i = 0; i < mesh->segment_count; i++) {
        const int *s = mesh->segments + 2 * (size_t)i;
        fsi__put_format(&w, "l %.0f %.0f\n", s[0] + 1.0, s[1] + 1.0);
    }
    return fsi__io_end(&w);
}

static void fsi__ply_put_property(fsi__io_writer *w, const fsi_io_attribute *a, int k)
{
    static const char *const colors[4] = { "red", "green", "blue", "alpha" };
    const char *type = fsi__io_types[a->type].ply;
    if (a->components == 1) fsi__put_format(w, "property %s %s\n", type, a->name);
    else if (a->components > 4) fsi__put_format(w, "property %s %s%d\n", type, a->name, k);
    else if (a->components > 2 && strcmp(a->name, "color") == 0)
        fsi__put_format(w, "property %s %s\n", type, colors[k]);
    else fsi__put_format(w, "property %s %s%c\n", type, a->name, "xyzw"[k]);
}

static void fsi__ply_put_header(fsi__io_writer *w, const fsi_io_mesh *m, int flags)
{
    const char *type = fsi__io_types[fsi__position_type(flags)].ply;
    int i, k;
    fsi__put_format(w, "ply\nformat %s 1.0\nelement vertex %d\n", flags & FSI_IO_ASCII ? "ascii"
                    : "binary_little_endian", m->vertex_count);
    fsi__put_format(w, "property %s x\nproperty %s y\nproperty %s z\n", type, type, type);
    if (m->uv_count > 0 && !m->triangle_uv) fsi__put_format(w, "property %s s\nproperty %s t\n", type, type);
    for (i = 0; i < m->attribute_count; i++)
        for (k = 0; k < m->attributes[i].components; k++) fsi__ply_put_property(w, &m->attributes[i], k);
    if (m->triangle_count > 0)
        fsi__put_format(w, "element face %d\nproperty list uchar int vertex_indices\n", m->triangle_count);
    if (m->triangle_count > 0 && m->uv_count > 0 && m->triangle_uv)
        fsi__put_format(w, "property list uchar %s texcoord\n", type);
    if (m->segment_count > 0)
        fsi__put_format(w, "element edge %d\nproperty int vertex1\nproperty int vertex2\n", m->segment_count);
    fsi__put_text(w, "end_header\n");
}

/* One row: position and attributes of a vertex. */
static void fsi__ply_put_vertex(fsi__io_writer *w, const fsi_io_mesh *m, int vertex, int flags)
{
    int i, k, ascii = flags & FSI_IO_ASCII;
    fsi__put_position(w, m->vertices[vertex], flags);
    if (m->uv_count > 0 && !m->triangle_uv) fsi__put_uv(w, m, vertex, flags);
    for (i = 0; i < m->attribute_count; i++) {
        const fsi_io_attribute *a = &m->attributes[i];
        const char *p = (const char *)a->data + (size_t)vertex * fsi__io_stride(a);
        for (k = 0; k < a->components; k++, p += fsi__io_types[a->type].size) {
            if (ascii) fsi__put_text(w, " ");
            fsi__put_item(w, ascii, a->type, p);
        }
    }
    if (ascii) fsi__put_text(w, "\n");
}

/* The corners of a triangle, after their number, or the ends of an edge. */
static void fsi__ply_put_corners(fsi__io_writer *w, const int *corner, int n, int flags)
{
    unsigned char three = 3;
    int k;
    if (flags & FSI_IO_ASCII && n == 3) fsi__put_format(w, "3 %d %d %d", corner[0], corner[1], corner[2]);
    else if (flags & FSI_IO_ASCII) fsi__put_format(w, "%d %d\n", corner[0], corner[1]);
    else {
        if (n == 3) fsi__io_put(w, &three, 1);
        for (k = 0; k < n; k++) fsi__put_int(w, corner[k]);
    }
}

/* One row: the corners of a triangle, and their texture coordinates if these are not of vertices. */
static void fsi__ply_put_face(fsi__io_writer *w, const fsi_io_mesh *m, int triangle, int flags)
{
    const int n = fsi__has_uv(m, triangle) ? 6 : 0, ascii = flags & FSI_IO_ASCII;
    const unsigned char byte = (unsigned char)n;
    int k;
    fsi__ply_put_corners(w, m->triangles + 3 * (size_t)triangle, 3, flags);
    if (m->uv_count > 0 && m->triangle_uv) {
        if (ascii) fsi__put_format(w, " %d", n);
        else fsi__io_put(w, &byte, 1);
        for (k = 0; k < n / 2; k++) fsi__put_uv(w, m, fsi__uv_of(m, triangle, k), flags);
    }
    if (ascii) fsi__put_text(w, "\n");
}

FSI_API fsi_status fsi_io_write_ply(fsi_io_out out, const fsi_io_mesh *mesh, int flags)
{
    static const char fn[] = "fsi_io_write_ply";
    fsi__io_writer w;
    int i;
    FSI__TRY(fsi__begin_mesh(&w, out, mesh, flags, fn));
    fsi__ply_put_header(&w, mesh, flags);
    for (i = 0; i < mesh->vertex_count; i++) fsi__ply_put_vertex(&w, mesh, i, flags);
    for (i = 0; i < mesh->triangle_count; i++) fsi__ply_put_face(&w, mesh, i, flags);
    for (i = 0; i < mesh->segment_count; i++) fsi__ply_put_corners(&w, mesh->segments + 2 * (size_t)i, 2, flags);
    return fsi__io_end(&w);
}

/* ---- >>vtp writer --------------------------------------------------------------------------------------------- */

/* An XML head names each array and its offset; the arrays follow in the same order, each after its size in 8 bytes.
   Writing the head and writing the arrays are the same walk, done twice: `arrays` is 0 and then 1. */
typedef struct fsi__vtp {
    fsi__io_writer w;
    const fsi_io_mesh *mesh;
    int arrays, flags;
    uint64_t offset;
    int points;                               /* that are written: vertices, then copies of those with several texture
                                                 coordinates */
    int *vertex, *uv, *next, *point, capacity; /* of points; of corners. NULL: points are vertices, with their pairs */
} fsi__vtp;

/* The point of `vertex` with this texture coordinate: the first free one in the vertex's list of points, or a new
   copy. */
static int fsi__vtp_point(fsi__vtp *v, int vertex, int uv)
{
    int p = vertex;
    while (v->uv[p] != uv && v->uv[p] != -2 && v->next[p] >= 0) p = v->next[p];
    if (v->uv[p] == uv) return p;
    if (v->uv[p] != -2) {
        v->next[p] = v->points;
        p = v->points++;
        v->vertex[p] = vertex;
        v->next[p] = -1;
    }
    v->uv[p] = uv;
    return p;
}

/* Texture coordinates of corners become those of points. */
static fsi_status fsi__vtp_split(fsi__vtp *v, fsi_io_out out)
{
    const fsi_io_mesh *m = v->mesh;
    const long long most = m->vertex_count + 3LL * m->triangle_count;
    int i;

    /* No texture coordinates: points are vertices. */
    if (!fsi__is_context(out.context)) return FSI_ERROR_COOKIE;
    v->points = m->vertex_count;
    v->vertex = v->uv = v->next = v->point = NULL;
    if (m->uv_count == 0 || !m->triangle_uv) return FSI_OK;
    if (most > 0x7FFFFFFF)
        return fsi__fail(out.context, FSI_ERROR_LIMIT, "fsi_io_write_vtp", -1, (double)most,
            "the mesh has too many corners");

    /* Lists of the points that a vertex has become. */
    v->capacity = (int)most;
    v->vertex = (int *)fsi__alloc(out.context, (size_t)most, 4 * sizeof(int));
    if (!v->vertex)
        return fsi__fail(out.context, FSI_ERROR_MEMORY, "fsi_io_write_vtp", -1, (double)most,
            "no memory for %.0f corners", (double)most);
    v->uv = v->vertex + most;
    v->next = v->uv + most;
    v->point = v->next + most;
    for (i = 0; i < m->vertex_count; i++) {
        v->vertex[i] = i;
        v->uv[i] = -2; /* not used yet */
        v->next[i] = -1;
    }

    /* Each corner finds its point, or makes one. */
    for (i = 0; i < 3 * m->triangle_count; i++) v->point[i] = fsi__vtp_point(v, m->triangles[i], m->triangle_uv[i]);
    return FSI_OK;
}

static int fsi__vtp_vertex(const fsi__vtp *v, int point) { return v->vertex ? v->vertex[point] : point; }

/* Returns 1 when the elements of the array are to follow. */
static int fsi__vtp_array(fsi__vtp *v, const char *name, fsi_io_type type, int components, int count)
{
    uint64_t bytes = (uint64_t)count * (uint64_t)(components * fsi__io_types[type].size);
    if (v->arrays) {
        fsi__put_le(&v->w, &bytes, 8);
        return 1;
    }
    fsi__put_format(&v->w, "<DataArray type=\"%s\" Name=\"%s\" NumberOfComponents=\"%d\"", fsi__io_types[type].vtk,
                    name, components);
    fsi__put_format(&v->w, " format=\"appended\" offset=\"%.0f\"/>\n", (double)v->offset);
    v->offset += 8 + bytes;
    return 0;
}

static void fsi__vtp_tag(fsi__vtp *v, const char *text)
{
    if (!v->arrays) fsi__put_text(&v->w, text);
}

/* Cells of `corners` corners each; index NULL: cell i is vertex i. */
static void fsi__vtp_cells(fsi__vtp *v, const int *index, int corners, int count)
{
    int i;
    if (fsi__vtp_array(v, "connectivity", FSI_IO_INT32, 1, corners * count))
        for (i = 0; i < corners * count; i++) fsi__put_int(&v->w, index ? index[i] : i);
    if (fsi__vtp_array(v, "offsets", FSI_IO_INT32, 1, count))
        for (i = 0; i < count; i++) fsi__put_int(&v->w, corners * (i + 1));
}

static void fsi__vtp_attribute(fsi__vtp *v, const fsi_io_attribute *a)
{
    int i, k, size = fsi__io_types[a->type].size;
    if (!fsi__vtp_array(v, a->name, a->type, a->components, v->points)) return;
    for (i = 0; i < v->points; i++)
        for (k = 0; k < a->components; k++)
            fsi__put_le(&v->w, (const char *)a->data + (size_t)fsi__vtp_vertex(v, i) * fsi__io_stride(a) + k * size,
                size);
}

static void fsi__vtp_walk(fsi__vtp *v, int particles)
{
    const fsi_io_mesh *m = v->mesh;
    int i;
    fsi__vtp_tag(v, m->uv_count > 0 ? "<PointData TCoords=\"uv\">\n" : "<PointData>\n");
    if (m->uv_count > 0 && fsi__vtp_array(v, "uv", fsi__position_type(v->flags), 2, v->points))
        for (i = 0; i < v->points; i++) fsi__put_uv(&v->w, m, v->uv ? v->uv[i] : i, v->flags & FSI_IO_SINGLE);
    for (i = 0; i < m->attribute_count; i++) fsi__vtp_attribute(v, &m->attributes[i]);
    fsi__vtp_tag(v, "</PointData>\n<Points>\n");
    if (fsi__vtp_array(v, "Points", fsi__position_type(v->flags), 3, v->points))
        for (i = 0; i < v->points; i++)
            fsi__put_position(&v->w, m->vertices[fsi__vtp_vertex(v, i)], v->flags & FSI_IO_SINGLE);
    fsi__vtp_tag(v, "</Points>\n<Verts>\n");
    fsi__vtp_cells(v, NULL, 1, particles);
    fsi__vtp_tag(v, "</Verts>\n<Lines>\n");
    fsi__vtp_cells(v, m->segments, 2, m->segment_count);
    fsi__vtp_tag(v, "</Lines>\n<Polys>\n");
    fsi__vtp_cells(v, v->point ? v->point : m->triangles, 3, m->triangle_count);
    fsi__vtp_tag(v, "</Polys>\n");
}

FSI_API fsi_status fsi_io_write_vtp(fsi_io_out out, const fsi_io_mesh *mesh, int flags)
{
    fsi__vtp v;
    fsi_status status = fsi__io_check_mesh(out.context, mesh, flags, "fsi_io_write_vtp");
    int particles;
    if (status != FSI_OK) return status;

    /* Points, and the file. */
    v.mesh = mesh;
    FSI__TRY(fsi__vtp_split(&v, out));
    if ((status = fsi__io_begin(&v.w, out, "fsi_io_write_vtp")) != FSI_OK) {
        fsi__free(out.context, v.vertex, (size_t)v.capacity, 4 * sizeof(int));
        return status;
    }

    /* Two walks: the first writes the description of all arrays, the second their numbers. */
    v.flags = flags;
    v.offset = 0;
    particles = mesh->triangle_count + mesh->segment_count > 0 ? 0 : mesh->vertex_count;
    fsi__put_text(&v.w, "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\"");
    fsi__put_text(&v.w, " byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PolyData>\n");
    fsi__put_format(&v.w, "<Piece NumberOfPoints=\"%d\" NumberOfVerts=\"%d\"", v.points, particles);
    fsi__put_format(&v.w, " NumberOfLines=\"%d\" NumberOfStrips=\"0\"", mesh->segment_count);
    fsi__put_format(&v.w, " NumberOfPolys=\"%d\">\n", mesh->triangle_count);
    v.arrays = 0;
    fsi__vtp_walk(&v, particles);
    fsi__put_text(&v.w, "</Piece>\n</PolyData>\n<AppendedData encoding=\"raw\">\n_");
    v.arrays = 1;
    fsi__vtp_walk(&v, particles);
    fsi__put_text(&v.w, "\n</AppendedData>\n</VTKFile>\n");
    if (v.vertex) fsi__free(out.context, v.vertex, (size_t)v.capacity, 4 * sizeof(int));
    return fsi__io_end(&v.w);
}

/* ---- >>time series writers ------------------------------------------------------------------------------------ */

static const char fsi__pvd_head[] =
    "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n"
    "<Collection>\n";
static const char fsi__pvd_tail[] = "</Collection>\n</VTKFile>\n";

static fsi_status fsi__check_frame(fsi_context *context, int frame, double time, const char *name, const char *fn)
{
    if (!fsi_is_finite(time))
        return fsi__fail(context, FSI_ERROR_NAN, fn, frame, time, "the time of frame %d is not finite", frame);
    if (!fsi__is_plain(name, 4096, 0))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, frame, 0, "frame %d has no name that can be written", frame);
    return FSI_OK;
}

static void fsi__pvd_put_frame(fsi__io_writer *w, double time, const char *name)
{
    fsi__put_text(w, "<DataSet timestep=\"");
    fsi__put_number(w, time, 0);
    fsi__put_text(w, "\" part=\"0\" file=\"");
    fsi__put_text(w, name);
    fsi__put_text(w, "\"/>\n");
}

FSI_API fsi_status fsi_io_write_pvd(fsi_io_out out, const double *times, const char *const *names, int count)
{
    static const char fn[] = "fsi_io_write_pvd";
    fsi__io_writer w;
    fsi_status status = FSI_OK;
    int i;
    if (count < 0 || (count > 0 && (!times || !names)))
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, count,
                         "%d frames, but an array is NULL or the count negative", count);
    for (i = 0; i < count && status == FSI_OK; i++) status = fsi__check_frame(out.context, i, times[i], names[i], fn);
    if (status == FSI_OK) status = fsi__io_begin(&w, out, fn);
    if (status != FSI_OK) return status;
    fsi__put_text(&w, fsi__pvd_head);
    for (i = 0; i < count; i++) fsi__pvd_put_frame(&w, times[i], names[i]);
    fsi__put_text(&w, fsi__pvd_tail);
    return fsi__io_end(&w);
}

/* Opens a file that exists, reads `size` bytes at `offset` (negative: from the end), and goes back to that place. */
static fsi_status fsi__io_reopen(fsi__io_writer *w, fsi_io_out out, long offset, void *data, size_t size,
                                 const char *fn)
{
    int ok, from = offset < 0 ? SEEK_END : SEEK_SET;
    fsi__io_attach(w, out, fopen(out.path, "r+b"), fn);
    if (!w->file) return fsi__fail(out.context, FSI_ERROR_IO, fn, -1, 0, "cannot open '%.150s'", out.path);
    ok = fseek(w->file, offset, from) == 0 && fread(data, 1, size, w->file) == size && fseek(w->file, offset,
            from) == 0;
    if (ok) return FSI_OK;
    fclose(w->file);
    return fsi__fail(out.context, FSI_ERROR_FORMAT, fn, -1, 0, "'%.150s' is too short for what it should be", out.path);
}

static fsi_status fsi__io_foreign(fsi__io_writer *w)
{
    fclose(w->file);
    return fsi__fail(w->out.context, FSI_ERROR_FORMAT, w->function, -1, 0, "'%.120s' is not what the former frame left",
                     w->out.path);
}

FSI_API fsi_status fsi_io_append_pvd(fsi_context *context, const char *path, int frame, double time, const char *name)
{
    static const char fn[] = "fsi_io_append_pvd";
    const size_t tail = sizeof fsi__pvd_tail - 1;
    fsi__io_writer w;
    char last[sizeof fsi__pvd_tail];
    FSI__TRY(fsi__check_frame(context, frame, time, name, fn));
    if (!path || frame < 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, frame, frame, "path is NULL or frame %d negative", frame);
    if (frame == 0) return fsi_io_write_pvd(fsi_io_to_file(context, path), &time, &name, 1);
    FSI__TRY(fsi__io_reopen(&w, fsi_io_to_file(context, path), -(long)tail, last, tail, fn));
    if (memcmp(last, fsi__pvd_tail, tail) != 0) return fsi__io_foreign(&w);
    fsi__pvd_put_frame(&w, time, name);
    fsi__put_text(&w, fsi__pvd_tail);
    return fsi__io_end(&w);
}

#define FSI__PC2_HEADER 32

/* "POINTCACHE2\0", version 1, vertices, first frame 0.0f, samples a frame 1.0f, samples. */
static void fsi__pc2_header(unsigned char *header, int vertex_count, int frame_count)
{
    uint32_t field[5] = { 1, 0, 0, 0x3F800000u, 0 };
    int i;
    field[1] = (uint32_t)vertex_count;
    field[4] = (uint32_t)frame_count;
    memcpy(header, "POINTCACHE2", 12);
    for (i = 0; i < 20; i++) header[12 + i] = (unsigned char)(field[i / 4] >> 8 * (i % 4) & 255);
}

static void fsi__pc2_put_frame(fsi__io_writer *w, const fsi_vec3 *x, int count)
{
    int i;
    for (i = 0; i < count; i++) fsi__put_position(w, x[i], FSI_IO_SINGLE);
}

FSI_API fsi_status fsi_io_write_pc2_header(fsi_io_out out, int vertex_count, int frame_count)
{
    static const char fn[] = "fsi_io_write_pc2_header";
    fsi__io_writer w;
    unsigned char header[FSI__PC2_HEADER];
    if (out.path || vertex_count < 1 || frame_count < 1)
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, 0,
                         "counts must be positive, and a file is written by fsi_io_append_pc2");
    fsi__pc2_header(header, vertex_count, frame_count);
    FSI__TRY(fsi__io_begin(&w, out, fn));
    fsi__io_put(&w, header, sizeof header);
    return fsi__io_end(&w);
}

FSI_API fsi_status fsi_io_write_pc2_frame(fsi_io_out out, const fsi_vec3 *vertices, int vertex_count)
{
    static const char fn[] = "fsi_io_write_pc2_frame";
    fsi__io_writer w;
    FSI__TRY(fsi__check_positions(out.context, vertices, vertex_count, 1, fn));
    if (out.path)
        FSI__TRY(fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, 0, "a file is written by fsi_io_append_pc2"));
    FSI__TRY(fsi__io_begin(&w, out, fn));
    fsi__pc2_put_frame(&w, vertices, vertex_count);
    return fsi__io_end(&w);
}

/* The frame goes behind the others first; then the new count makes it part of the file. */
FSI_API fsi_status fsi_io_append_pc2(fsi_context *context, const char *path, int frame, const fsi_vec3 *vertices,
                                     int vertex_count)
{
    static const char fn[] = "fsi_io_append_pc2";
    fsi_io_out out = fsi_io_to_file(context, path);
    unsigned char header[FSI__PC2_HEADER], found[FSI__PC2_HEADER];
    double offset = FSI__PC2_HEADER + 12.0 * frame * vertex_count;
    fsi__io_writer w;
    fsi_status status;

    /* Input. */
    FSI__TRY(fsi__check_positions(context, vertices, vertex_count, 1, fn));
    if (!path || frame < 0 || vertex_count < 1)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, frame, frame, "path is NULL, frame %d negative, or no vertex",
                         frame);
    if (offset + 12.0 * vertex_count > (double)LONG_MAX)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, frame, offset, "frame %d lies beyond what fseek can reach",
                         frame);

    /* The file as the frame before left it. */
    fsi__pc2_header(header, vertex_count, frame);
    status = frame == 0 ? fsi__io_begin(&w, out, fn) : fsi__io_reopen(&w, out, 0, found, sizeof found, fn);
    if (status != FSI_OK) return status;
    if (frame == 0) fsi__io_put(&w, header, sizeof header);
    else if (memcmp(header, found, sizeof header) != 0) return fsi__io_foreign(&w);
    else if (fseek(w.file, (long)offset, SEEK_SET) != 0) fsi__io_short_write(&w);

    /* The frame; then the count. */
    fsi__pc2_put_frame(&w, vertices, vertex_count);
    fsi__io_flush(&w);
    if (fseek(w.file, 0, SEEK_SET) != 0) fsi__io_short_write(&w);
    fsi__pc2_header(header, vertex_count, frame + 1);
    fsi__io_put(&w, header, sizeof header);
    return fsi__io_end(&w);
}

/* ---- >>deflate ------------------------------------------------------------------------------------------------ */

/* Deflate (RFC 1951) in three steps. Matching: a string seen in the last 32 KB becomes (length, distance); candidates
   are found by a hash of their first three bytes, newest first:

        head[hash] --> position --prev--> older position --prev--> ... (at most FSI__LZ_DEPTH steps)

   Collecting: literals and matches gather in `tokens` until a block is full. Coding: each block gets Huffman codes made
   from its own counts, which are sent ahead as code lengths, themselves Huffman coded. */
#define FSI__LZ_WINDOW 32768
#define FSI__LZ_DEPTH 64     /* candidates tried */
#define FSI__LZ_NICE 130     /* a match this long is taken at once */
#define FSI__LZ_TOKENS 32768 /* a block */
#define FSI__LZ_LITERALS 286
#define FSI__LZ_DISTANCES 30
#define FSI__PNG_CHUNK 32768

typedef struct fsi__huffman {
    int count;
    unsigned char length[FSI__LZ_LITERALS];
    uint16_t code[FSI__LZ_LITERALS]; /* bit-reversed: deflate sends codes from their top bit */
} fsi__huffman;

typedef struct fsi__png {
    fsi__io_writer w;
    uint32_t crc_table[256];
    uint64_t bits; /* not yet sent, lowest first */
    int bit_count;
    uint32_t chunk_used;
    int token_count;
    uint32_t tokens[FSI__LZ_TOKENS]; /* literal byte, or distance << 9 | length */
    int head[FSI__LZ_WINDOW], prev[FSI__LZ_WINDOW]; /* position + 1; 0: none */
    unsigned char chunk[4 + FSI__PNG_CHUNK]; /* type and data of the IDAT chunk being filled */
    fsi__huffman literals, distances, lengths;
} fsi__png;

static void fsi__put_u32_be(fsi__io_writer *w, uint32_t v)
{
    unsigned char b[4];
    b[0] = (unsigned char)(v >> 24);
    b[1] = (unsigned char)(v >> 16);
    b[2] = (unsigned char)(v >> 8);
    b[3] = (unsigned char)v;
    fsi__io_put(w, b, 4);
}

/* CRC-32 with the polynomial 0xEDB88320 (PNG specification, annex D). */
static void fsi__crc_table(uint32_t *table)
{
    uint32_t n, k, c;
    for (n = 0; n < 256; n++) {
        for (c = n, k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[n] = c;
    }
}

/* length, type, data, CRC of type and data; `typed` holds the four bytes of the type and then the data. */
static void fsi__png_chunk(fsi__png *z, const unsigned char *typed, uint32_t size)
{
    uint32_t i, crc = 0xFFFFFFFFu;
    for (i = 0; i < size + 4; i++) crc = z->crc_table[(crc ^ typed[i]) & 255] ^ (crc >> 8);
    fsi__put_u32_be(&z->w, size);
    fsi__io_put(&z->w, typed, (size_t)size + 4);
    fsi__put_u32_be(&z->w, crc ^ 0xFFFFFFFFu);
}

static void fsi__png_byte(fsi__png *z, unsigned byte)
{
    z->chunk[4 + z->chunk_used++] = (unsigned char)byte;
    if (z->chunk_used == FSI__PNG_CHUNK) {
        fsi__png_chunk(z, z->chunk, z->chunk_used);
        z->chunk_used = 0;
    }
}

static void fsi__put_bits(fsi__png *z, uint32_t value, int count)
{
    z->bits |= (uint64_t)value << z->bit_count;
    for (z->bit_count += count; z->bit_count >= 8; z->bit_count -= 8) {
        fsi__png_byte(z, (unsigned)(z->bits & 255));
        z->bits >>= 8;
    }
}

/* Depths of the leaves of a Huffman tree: joins the two lightest nodes until one is left. Returns the greatest. */
static int fsi__huffman_depths(const uint32_t *weight, int count, unsigned char *depth)
{
    uint32_t w[2 * FSI__LZ_LITERALS];
    int up[2 * FSI__LZ_LITERALS], i, k, nodes = count, deepest = 0;
    memcpy(w, weight, (size_t)count * sizeof *w);
    memset(up, 0, sizeof up);
    for (;;) {
        int a = -1, b = -1; /* lightest, second lightest */
        for (i = 0; i < nodes; i++) {
            if (w[i] == 0) continue;
            if (a < 0 || w[i] < w[a]) { b = a; a = i; } else if (b < 0 || w[i] < w[b]) b = i;
        }
        if (b < 0) break;
        w[nodes] = w[a] + w[b];
        w[a] = w[b] = 0;
        up[a] = up[b] = nodes++;
    }
    for (i = 0; i < count; i++) {
        for (depth[i] = 0, k = up[i]; k; k = up[k]) depth[i]++;
        if (depth[i] > deepest) deepest = depth[i];
    }
    return deepest;
}

/* Canonical codes (RFC 1951, 3.2.2) of at most `limit` bits. Flattening the weights shortens the longest code. */
static void fsi__huffman_build(fsi__huffman *h, uint32_t *weight, int count, int limit)
{
    int i, bits, k, used = 0;
    unsigned code = 0, reversed;
    for (i = 0; i < count; i++) used += weight[i] != 0;
    for (i = 0; used < 2; i++)
        if (weight[i] == 0) { weight[i] = 1; used++; } /* a code needs two words to be complete */
    while (fsi__huffman_depths(weight, count, h->length) > limit)
        for (i = 0; i < count; i++) weight[i] = (weight[i] + 1) / 2;
    for (bits = 1; bits <= limit; bits++, code <<= 1) {
        for (i = 0; i < count; i++) {
            if (h->length[i] != bits) continue;
            for (reversed = 0, k = 0; k < bits; k++) reversed |= (code >> k & 1u) << (bits - 1 - k);
            h->code[i] = (uint16_t)reversed;
            code++;
        }
    }
    for (h->count = count; h->length[h->count - 1] == 0; h->count--) {}
}

static void fsi__put_symbol(fsi__png *z, const fsi__huffman *h, int symbol)
{
    fsi__put_bits(z, h->code[symbol], h->length[symbol]);
}

/* Lengths 3..258 and distances 1..32768 fall in classes of 2^extra values (RFC 1951, 3.2.5). Per octave there are
   2^fine classes: v = value - base, extra = floor(log2 v) - fine, class = extra * 2^fine + (v >> extra). */
static int fsi__octave_class(int v, int fine, int *extra)
{
    *extra = 0;
    while ((v >> *extra) >= 2 << fine) ++*extra;
    return (*extra << fine) + (v >> *extra);
}

static int fsi__length_symbol(int length, int *extra)
{
    int symbol = 257 + fsi__octave_class(length - 3, 2, extra);
    if (length == 258) { *extra = 0; symbol = 285; }
    return symbol;
}

/* The code lengths of both trees, run-length coded: 16 repeats the last 3-6 times, 17 and 18 are 3-10 and 11-138 zeros.
   Item: symbol | extra value << 8 | extra bits << 16. Returns the number of items. */
static int fsi__code_length_items(const unsigned char *length, int count, uint32_t *item)
{
    int i, n = 0, run;
    for (i = 0; i < count; i += run) {
        int zero = length[i] == 0, most = zero ? 138 : 7;
        for (run = 1; i + run < count && run < most && length[i + run] == length[i];) run++;
        if (zero && run >= 11) item[n++] = 18u | (uint32_t)(run - 11) << 8 | 7u << 16;
        else if (zero && run >= 3) item[n++] = 17u | (uint32_t)(run - 3) << 8 | 3u << 16;
        else if (!zero && run >= 4) {
            item[n++] = length[i];
            item[n++] = 16u | (uint32_t)(run - 4) << 8 | 2u << 16;
        } else {
            run = 1;
            item[n++] = length[i];
        }
    }
    return n;
}

static void fsi__put_block_header(fsi__png *z, int last)
{
    static const unsigned char order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    unsigned char all[FSI__LZ_LITERALS + FSI__LZ_DISTANCES];
    uint32_t item[FSI__LZ_LITERALS + FSI__LZ_DISTANCES], weight[19];
    int i, n, sent = 19, literals = z->literals.count, distances = z->distances.count;
    memcpy(all, z->literals.length, (size_t)literals);
    memcpy(all + literals, z->distances.length, (size_t)distances);
    n = fsi__code_length_items(all, literals + distances, item);
    memset(weight, 0, sizeof weight);
    for (i = 0; i < n; i++) weight[item[i] & 255]++;
    fsi__huffman_build(&z->lengths, weight, 19, 7);
    while (z->lengths.length[order[sent - 1]] == 0) sent--;
    fsi__put_bits(z, (uint32_t)last | 2u << 1, 3);
    fsi__put_bits(z, (uint32_t)(literals - 257), 5);
    fsi__put_bits(z, (uint32_t)(distances - 1), 5);
    fsi__put_bits(z, (uint32_t)(sent - 4), 4);
    for (i = 0; i < sent; i++) fsi__put_bits(z, z->lengths.length[order[i]], 3);
    for (i = 0; i < n; i++) {
        fsi__put_symbol(z, &z->lengths, (int)(item[i] & 255));
        fsi__put_bits(z, item[i] >> 8 & 255, (int)(item[i] >> 16));
    }
}

static void fsi__put_block(fsi__png *z, int last)
{
    uint32_t literals[FSI__LZ_LITERALS], distances[FSI__LZ_DISTANCES];
    int i, extra;

    /* How often each symbol occurs. */
    memset(literals, 0, sizeof literals);
    memset(distances, 0, sizeof distances);
    literals[256] = 1; /* end of block */
    for (i = 0; i < z->token_count; i++) {
        int length = (int)(z->tokens[i] & 511), distance = (int)(z->tokens[i] >> 9);
        literals[distance ? fsi__length_symbol(length, &extra) : length]++;
        if (distance) distances[fsi__octave_class(distance - 1, 1, &extra)]++;
    }

    /* Codes, in front of the block; then the tokens. */
    fsi__huffman_build(&z->literals, literals, FSI__LZ_LITERALS, 15);
    fsi__huffman_build(&z->distances, distances, FSI__LZ_DISTANCES, 15);
    fsi__put_block_header(z, last);
    for (i = 0; i < z->token_count; i++) {
        int length = (int)(z->tokens[i] & 511), distance = (int)(z->tokens[i] >> 9);
        if (!distance) { fsi__put_symbol(z, &z->literals, length); continue; }
        fsi__put_symbol(z, &z->literals, fsi__length_symbol(length, &extra));
        fsi__put_bits(z, (uint32_t)(length - 3) & ((1u << extra) - 1), extra);
        fsi__put_symbol(z, &z->distances, fsi__octave_class(distance - 1, 1, &extra));
        fsi__put_bits(z, (uint32_t)(distance - 1) & ((1u << extra) - 1), extra);
    }
    fsi__put_symbol(z, &z->literals, 256);
    z->token_count = 0;
}

/* Enters position `at` and returns the length of the longest match among `depth` earlier ones, 0 when below 3. */
static int fsi__lz_match(fsi__png *z, const unsigned char *data, int at, int size, int depth, int *distance)
{
    int room = size - at < 258 ? size - at : 258, best = 2, candidate, length, *head;
    if (room < 3) return 0;
    head = &z->head[((uint32_t)data[at] << 16 | (uint32_t)data[at + 1] << 8 | data[at + 2]) * 2654435761u >> 17];
    for (candidate = *head - 1; candidate >= 0 && at - candidate < FSI__LZ_WINDOW && depth-- > 0 && best < FSI__LZ_NICE
         && best < room;
         candidate = z->prev[candidate % FSI__LZ_WINDOW] - 1) {
        const unsigned char *p = data + candidate, *q = data + at;
        if (p[best] != q[best] || p[best - 1] != q[best - 1]) continue;
        for (length = 0; length < room && p[length] == q[length];) length++;
        if (length > best && (length > 3 || at - candidate < 4096)) { best = length; *distance = at - candidate; }
    }
    z->prev[at % FSI__LZ_WINDOW] = *head;
    *head = at + 1;
    return best > 2 ? best : 0;
}

static void fsi__put_token(fsi__png *z, uint32_t token)
{
    if (z->token_count == FSI__LZ_TOKENS) fsi__put_block(z, 0);
    z->tokens[z->token_count++] = token;
}

/* zlib stream (RFC 1950): two bytes, deflate data, Adler-32. A match gives way to a longer one a byte later. */
static void fsi__zlib(fsi__png *z, const unsigned char *data, int size)
{
    int at, length, distance = 0, next, next_distance = 0;
    uint32_t a = 1, b = 0;

    /* The header. */
    fsi__png_byte(z, 0x78);
    fsi__png_byte(z, 0xDA);

    /* Matches, of which the longer of two neighbours counts. */
    length = fsi__lz_match(z, data, 0, size, FSI__LZ_DEPTH, &distance);
    for (at = 0; at < size;) {
        next = fsi__lz_match(z, data, at + 1, size, FSI__LZ_DEPTH, &next_distance);
        if (length < 3 || next > length) {
            fsi__put_token(z, data[at++]);
        } else {
            int end = at + length;
            fsi__put_token(z, (uint32_t)distance << 9 | (uint32_t)length);
            for (at += 2; at < end; at++) fsi__lz_match(z, data, at, size, 0, &next_distance);
            next = fsi__lz_match(z, data, at, size, FSI__LZ_DEPTH, &next_distance);
        }
        length = next;
        distance = next_distance;
    }

    /* The rest of the last block, and the checksum. */
    fsi__put_block(z, 1);
    fsi__put_bits(z, 0, 7); /* fills the last byte */
    for (at = 0; at < size; at++) {
        a = (a + data[at]) % 65521u;
        b = (b + a) % 65521u;
    }
    for (at = 24; at >= 0; at -= 8) fsi__png_byte(z, (b << 16 | a) >> at & 255);
}

/* ---- >>png ---------------------------------------------------------------------------------------------------- */

/* What a filter predicts from left (a), above (b) and above left (c) (PNG specification, 9.2). */
static int fsi__png_predict(int filter, int a, int b, int c)
{
    int pa = b - c, pb = a - c, pc = pa + pb;
    if (filter == 1) return a;
    if (filter == 2) return b;
    if (filter == 3) return (a + b) / 2;
    if (filter == 0) return 0;
    if (pa < 0) pa = -pa; /* Paeth: the one nearest to a + b - c */
    if (pb < 0) pb = -pb;
    if (pc < 0) pc = -pc;
    return pa <= pb && pa <= pc ? a : (pb <= pc ? b : c);
}

/* row - prediction into out; returns the sum of |residual|, a measure of how badly it will compress. */
static long fsi__png_filter(int filter, const unsigned char *row, const unsigned char *above, int bytes, int pixel,
                            unsigned char *out)
{
    int i, a, b, c;
    long sum = 0;
    for (i = 0; i < bytes; i++) {
        a = i >= pixel ? row[i - pixel] : 0;
        b = above ? above[i] : 0;
        c = i >= pixel && above ? above[i - pixel] : 0;
        out[i] = (unsigned char)(row[i] - fsi__png_predict(filter, a, b, c));
        sum += out[i] < 128 ? out[i] : 256 - out[i];
    }
    return sum;
}

/* Each row starts with its filter: the one with the smallest sum of |residual| (PNG specification, 12.8). */
static void fsi__png_filter_rows(const unsigned char *pixels, int bytes, int height, int pixel, ptrdiff_t stride,
                                 unsigned char *out)
{
    int y, filter;
    for (y = 0; y < height; y++, pixels += stride, out += bytes + 1) {
        const unsigned char *above = y > 0 ? pixels - stride : NULL;
        long sum, best = -1;
        for (filter = 0; filter < 5; filter++) {
            sum = fsi__png_filter(filter, pixels, above, bytes, pixel, out + 1);
            if (best < 0 || sum < best) { best = sum; out[0] = (unsigned char)filter; }
        }
        if (out[0] != 4) fsi__png_filter(out[0], pixels, above, bytes, pixel, out + 1);
    }
}

static void fsi__png_stream(fsi__png *z, const unsigned char *rows, int size, int width, int height, int channels)
{
    static const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    static const unsigned char color_type[5] = { 0, 0, 4, 2, 6 };
    unsigned char header[17] = { 'I', 'H', 'D', 'R', 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0 };
    header[6] = (unsigned char)(width >> 8);
    header[7] = (unsigned char)(width & 255);
    header[10] = (unsigned char)(height >> 8);
    header[11] = (unsigned char)(height & 255);
    header[13] = color_type[channels];
    fsi__crc_table(z->crc_table);
    fsi__io_put(&z->w, signature, 8);
    fsi__png_chunk(z, header, 13);
    memcpy(z->chunk, "IDAT", 4);
    fsi__zlib(z, rows, size);
    if (z->chunk_used > 0) fsi__png_chunk(z, z->chunk, z->chunk_used);
    fsi__png_chunk(z, (const unsigned char *)"IEND", 0);
}

FSI_API fsi_status fsi_io_write_png(fsi_io_out out, const void *pixels, int width, int height, int channels,
                                    ptrdiff_t row_bytes)
{
    static const char fn[] = "fsi_io_write_png";
    ptrdiff_t bytes = (ptrdiff_t)width * channels, stride = row_bytes ? row_bytes : bytes;
    fsi_status status = FSI_ERROR_MEMORY;
    unsigned char *rows;
    fsi__png *z;
    size_t size;

    /* Input. */
    if (!pixels) return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, 0, "pixels is NULL");
    if (width < 1 || width > 65535 || height < 1 || height > 65535)
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, width,
                         "a picture of %d x %d: each side must be 1 to 65535", width, height);
    if (channels < 1 || channels > 4)
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, channels, "%d channels: must be 1 to 4", channels);
    if ((stride < 0 ? -stride : stride) < bytes)
        return fsi__fail(out.context, FSI_ERROR_ARGUMENT, fn, -1, (double)row_bytes,
                         "row_bytes is %.0f, a row has %.0f", (double)row_bytes, (double)bytes);
    if ((uint64_t)(bytes + 1) * (uint64_t)height > 0x7FFFFFFFu)
        return fsi__fail(out.context, FSI_ERROR_LIMIT, fn, -1, (double)bytes * height,
                         "a picture of %d x %d x %d exceeds 2^31 bytes", width, height, channels);

    /* Rows with their filters, compressed into the stream. */
    size = (size_t)(bytes + 1) * (size_t)height;
    rows = (unsigned char *)fsi__alloc(out.context, size, 1);
    z = (fsi__png *)fsi__alloc(out.context, 1, sizeof *z);
    if (rows && z) status = fsi__io_begin(&z->w, out, fn);
    else fsi__fail(out.context, status, fn, -1, (double)size, "no memory for a picture of %d x %d", width, height);
    if (status == FSI_OK) {
        fsi__png_filter_rows((const unsigned char *)pixels, (int)bytes, height, channels, stride, rows);
        fsi__png_stream(z, rows, (int)size, width, height, channels);
        status = fsi__io_end(&z->w);
    }
    fsi__free(out.context, z, 1, sizeof *z);
    fsi__free(out.context, rows, size, 1);
    return status;
}

FSI__COLD_END
FSI__STRICT_END
#if defined(_MSC_VER)
#pragma warning(pop)
#endif

#endif /* once */
#endif /* implementation */
