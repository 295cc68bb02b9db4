/* A signal in NumPy's file format, for trying the program plait on a real file.
 *
 *   npy_signal make FILE      writes 2^20 f32 values: two square waves and a slow drift, in noise
 *   npy_signal compare A B    largest difference between two such files, against the rounding of
 *                             a transform and its inverse: 2 * 20 stages of at most 2^-24 each
 *   npy_signal peaks FILE     the five largest values of a transformed file
 *
 * The format: "\x93NUMPY", version 1.0, a 16-bit length, a Python dict padded with blanks so that
 * the data starts at a multiple of 64, the data. Little-endian, like every machine plait runs on.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 20, HEADER = 128 };

static int make(const char *path) {
    char header[HEADER];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); /* 0x76 = 128 - 10 bytes follow */
    const int length = snprintf(header + 10, sizeof header - 10,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", N);
    header[10 + length] = ' ';
    header[HEADER - 1] = '\n';

    float *x = malloc(N * sizeof *x);
    FILE *file = fopen(path, "wb");
    uint32_t noise = 1;
    if (!x || !file) return perror(path), 1;
    for (int i = 0; i < N; ++i) {
        noise = noise * 1664525u + 1013904223u;
        x[i] = (i >> 12 & 1 ? -1.f : 1.f) + (i >> 5 & 1 ? -.5f : .5f) + .25f * (float)i / N +
               (float)(int32_t)noise * 0x1p-31f;
    }
    const int bad = fwrite(header, 1, HEADER, file) != HEADER || fwrite(x, sizeof *x, N, file) != N;
    if (fclose(file) || bad) return perror(path), 1;
    free(x);
    printf("%s: %d points, %d bytes\n", path, N, HEADER + 4 * N);
    return 0;
}

static float *load(const char *path) {
    unsigned char fixed[10];
    char dict[4096] = "";
    float *x = malloc(N * sizeof *x);
    FILE *file = fopen(path, "rb");
    if (!x || !file || fread(fixed, 1, 10, file) != 10 || memcmp(fixed, "\x93NUMPY\x01", 7)) {
        fprintf(stderr, "%s: not a .npy file of version 1\n", path);
        exit(1);
    }
    const size_t length = fixed[8] + 256u * fixed[9];
    if (length >= sizeof dict || fread(dict, 1, length, file) != length || !strstr(dict, "'<f4'") ||
        fread(x, sizeof *x, N, file) != N || fgetc(file) != EOF) {
        fprintf(stderr, "%s: not %d values of type f32\n", path, N);
        exit(1);
    }
    fclose(file);
    return x;
}

static int compare(const char *path_a, const char *path_b) {
    float *a = load(path_a), *b = load(path_b);
    double squares = 0, error = 0, largest = 0;
    for (int i = 0; i < N; ++i) {
        const double d = (double)a[i] - b[i];
        squares += (double)a[i] * a[i];
        error += d * d;
        largest = fmax(largest, fabs(d));
    }
    const double relative = sqrt(error / squares), bound = 2 * 20 * 0x1p-24;
    const int ok = relative <= bound; /* NaN fails */
    printf("round trip: largest difference %.2g, relative error %.2g (bound %.2g): %s\n", largest,
           relative, bound, ok ? "ok" : "WRONG");
    free(a);
    free(b);
    return !ok;
}

static int peaks(const char *path) {
    float *y = load(path);
    for (int k = 0; k < 5; ++k) {
        int at = 0;
        for (int i = 1; i < N; ++i)
            if (fabsf(y[i]) > fabsf(y[at])) at = i;
        printf("  output %7d (0x%05x): %10.3f\n", at, at, y[at]);
        y[at] = 0;
    }
    free(y);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "make")) return make(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "peaks")) return peaks(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "compare")) return compare(argv[2], argv[3]);
    fprintf(stderr, "usage: npy_signal make FILE | compare A B | peaks FILE\n");
    return 2;
}
