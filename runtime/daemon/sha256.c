#include "sha256.h"

struct sha {
  uint32_t state[8];
  uint64_t size;
  uint8_t block[64];
};

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t big(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void mix(struct sha *sha) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++) w[i] = big(sha->block + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
  }
  memcpy(s, sha->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t e = s[4], a = s[0];
    uint32_t one =
        s[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + constants[i] + w[i];
    uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; i++) sha->state[i] += s[i];
}

static void begin(struct sha *sha) {
  *sha = (struct sha){
      .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void add(struct sha *sha, const void *data, size_t size) {
  const uint8_t *at = data;
  for (; size; size--) {
    sha->block[sha->size++ % 64] = *at++;
    if (sha->size % 64 == 0) mix(sha);
  }
}

static void finish(struct sha *sha, uint8_t out[32]) {
  uint64_t bits = sha->size * 8;
  uint8_t end[8];
  add(sha, "\x80", 1);
  while (sha->size % 64 != 56) add(sha, "", 1);
  for (int i = 0; i < 8; i++) end[i] = (uint8_t)(bits >> (56 - 8 * i));
  add(sha, end, 8);
  for (int i = 0; i < 32; i++) out[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_hex(const void *key, size_t key_size, const struct part *parts, int count, char out[65]) {
  uint8_t padded[64] = {0}, digest[32];
  struct sha sha;
  begin(&sha);
  add(&sha, key, key_size);
  if (key_size > 64)
    finish(&sha, padded);
  else
    memcpy(padded, key, key_size);
  for (int i = 0; i < 64; i++) padded[i] ^= 0x36;
  begin(&sha);
  add(&sha, padded, 64);
  for (int i = 0; i < count; i++) add(&sha, parts[i].data, parts[i].size);
  finish(&sha, digest);
  for (int i = 0; i < 64; i++) padded[i] ^= 0x36 ^ 0x5c;
  begin(&sha);
  add(&sha, padded, 64);
  add(&sha, digest, 32);
  finish(&sha, digest);
  for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
