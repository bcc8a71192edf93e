"""Checks Ed25519 signatures (RFC 8032) in plain Python.

It is slow and not hardened against timing; checking public signatures needs neither. One encoding
of each signature is accepted: S below the group order, R and the key canonical and not of low order.
"""
import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
IDENTITY = (0, 1, 1, 0)  # extended coordinates: x = X/Z, y = Y/Z, T = XY/Z


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(n, p):
    product = IDENTITY
    while n:
        if n & 1:
            product = add(product, p)
        p, n = add(p, p), n >> 1
    return product


def decode(encoded):
    """The point with this encoding; None for any other bytes, and for points of low order."""
    value = int.from_bytes(encoded, "little")
    y, sign = value & (1 << 255) - 1, value >> 255
    if len(encoded) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    point = (x, y, 1, x * y % P)
    return None if multiply(8, point)[0] == 0 else point


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verify(key, message, signature):
    """Whether the owner of this key signed this message."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    point, r_point = decode(key), decode(r)
    if len(signature) != 64 or point is None or r_point is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % ORDER
    return same(multiply(s, BASE), add(r_point, multiply(h, point)))
