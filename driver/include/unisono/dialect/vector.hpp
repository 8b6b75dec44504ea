// Vectors of the dialect: float4, int16 and so on. Elements are got by index, by v.x, v.y, v.z, v.w (up to four
// elements) and by v.s0 to v.sF; several at once by v.xy, v.wzyx, v.lo, v.hi, v.even, v.odd, and by v.s0213, which
// `unisono kernel build` makes v.elements<0, 2, 1, 3>() of. Several elements may be assigned, too, where none is named
// twice. Operations are element by element, and a scalar stands for a vector of equal elements.
#ifndef UNISONO_DIALECT_VECTOR_HPP
#define UNISONO_DIALECT_VECTOR_HPP

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace unisono::dialect {

template <class Element, int kLength>
struct Vector;

/// Some elements of a vector of kLength, in an order: a place within the vector, which is read and written as one.
template <class Element, int kLength, int... kAt>
struct Swizzle {
  using Value = Vector<Element, sizeof...(kAt)>;
  Element of[kLength];

  static constexpr bool distinct() {
    constexpr int kAll[] = {kAt...};
    for (std::size_t i = 0; i < sizeof...(kAt); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kAll[i] == kAll[j]) return false;
      }
    }
    return true;
  }
  Value value() const {
    Value result;
    int i = 0;
    ((result.s[i++] = of[kAt]), ...);
    return result;
  }
  operator Value() const { return value(); }  // NOLINT(google-explicit-constructor): as in the dialect
  Element operator[](std::size_t at) const { return value()[at]; }
  Swizzle& operator=(const Value& from) {
    static_assert(distinct(), "an element is assigned twice");
    int i = 0;
    ((of[kAt] = from.s[i++]), ...);
    return *this;
  }
  Swizzle& operator=(const Swizzle& from) { return *this = from.value(); }
  Swizzle(const Swizzle&) = default;
  Swizzle() = default;
};

/// The vector that a type stands for in an operation; void for scalars.
template <class T>
struct AsVector {
  using Type = void;
};
template <class Element, int kLength>
struct AsVector<Vector<Element, kLength>> {
  using Type = Vector<Element, kLength>;
};
template <class Element, int kLength, int... kAt>
struct AsVector<Swizzle<Element, kLength, kAt...>> {
  using Type = typename Swizzle<Element, kLength, kAt...>::Value;
};
template <class Left, class Right>
using Common = std::conditional_t<std::is_void_v<typename AsVector<Left>::Type>, typename AsVector<Right>::Type,
                                  typename AsVector<Left>::Type>;
template <class Left, class Right>
concept Operands = !std::is_void_v<Common<Left, Right>>;

/// The even places of a vector, the odd ones, and its halves.
template <class Element, int kLength, int kFrom, int kStep, class Places>
struct Part;
template <class Element, int kLength, int kFrom, int kStep, int... kPlace>
struct Part<Element, kLength, kFrom, kStep, std::integer_sequence<int, kPlace...>> {
  using Type = Swizzle<Element, kLength, (kFrom + kStep * kPlace)...>;
};
template <class Element, int kLength, int kFrom, int kStep>
using PartOf = typename Part<Element, kLength, kFrom, kStep, std::make_integer_sequence<int, kLength / 2>>::Type;

// The names of elements, for each length. Macros: a name cannot be made otherwise.
#define UNISONO_DIALECT_PAIR(a, i, b, j) Swizzle<Element, kLength, i, j> a##b;
#define UNISONO_DIALECT_TRIPLE(a, i, b, j, c, k) Swizzle<Element, kLength, i, j, k> a##b##c;
#define UNISONO_DIALECT_QUAD(a, i, b, j, c, k, d, l) Swizzle<Element, kLength, i, j, k, l> a##b##c##d;
#define UNISONO_DIALECT_EACH2(name, ...) name(__VA_ARGS__, x, 0) name(__VA_ARGS__, y, 1)
#define UNISONO_DIALECT_AGAIN2(name, ...) name(__VA_ARGS__, x, 0) name(__VA_ARGS__, y, 1)
#define UNISONO_DIALECT_THRICE2(name, ...) name(__VA_ARGS__, x, 0) name(__VA_ARGS__, y, 1)
#define UNISONO_DIALECT_EACH3(name, ...) UNISONO_DIALECT_EACH2(name, __VA_ARGS__) name(__VA_ARGS__, z, 2)
#define UNISONO_DIALECT_AGAIN3(name, ...) UNISONO_DIALECT_AGAIN2(name, __VA_ARGS__) name(__VA_ARGS__, z, 2)
#define UNISONO_DIALECT_THRICE3(name, ...) UNISONO_DIALECT_THRICE2(name, __VA_ARGS__) name(__VA_ARGS__, z, 2)
#define UNISONO_DIALECT_EACH4(name, ...) UNISONO_DIALECT_EACH3(name, __VA_ARGS__) name(__VA_ARGS__, w, 3)
#define UNISONO_DIALECT_AGAIN4(name, ...) UNISONO_DIALECT_AGAIN3(name, __VA_ARGS__) name(__VA_ARGS__, w, 3)
#define UNISONO_DIALECT_THRICE4(name, ...) UNISONO_DIALECT_THRICE3(name, __VA_ARGS__) name(__VA_ARGS__, w, 3)
#define UNISONO_DIALECT_SEVERAL(n, a, i) \
  UNISONO_DIALECT_EACH##n(UNISONO_DIALECT_PAIR, a, i) UNISONO_DIALECT_EACH##n(UNISONO_DIALECT_TRIPLES##n, a, i)
#define UNISONO_DIALECT_TRIPLES2(...)                         \
  UNISONO_DIALECT_AGAIN2(UNISONO_DIALECT_TRIPLE, __VA_ARGS__) \
  UNISONO_DIALECT_AGAIN2(UNISONO_DIALECT_QUADS2, __VA_ARGS__)
#define UNISONO_DIALECT_TRIPLES3(...)                         \
  UNISONO_DIALECT_AGAIN3(UNISONO_DIALECT_TRIPLE, __VA_ARGS__) \
  UNISONO_DIALECT_AGAIN3(UNISONO_DIALECT_QUADS3, __VA_ARGS__)
#define UNISONO_DIALECT_TRIPLES4(...)                         \
  UNISONO_DIALECT_AGAIN4(UNISONO_DIALECT_TRIPLE, __VA_ARGS__) \
  UNISONO_DIALECT_AGAIN4(UNISONO_DIALECT_QUADS4, __VA_ARGS__)
#define UNISONO_DIALECT_QUADS2(...) UNISONO_DIALECT_THRICE2(UNISONO_DIALECT_QUAD, __VA_ARGS__)
#define UNISONO_DIALECT_QUADS3(...) UNISONO_DIALECT_THRICE3(UNISONO_DIALECT_QUAD, __VA_ARGS__)
#define UNISONO_DIALECT_QUADS4(...) UNISONO_DIALECT_THRICE4(UNISONO_DIALECT_QUAD, __VA_ARGS__)

/// The elements of a vector of kLength, by all their names.
template <class Element, int kLength>
struct Elements;
template <class Element>
struct Elements<Element, 2> {
  static constexpr int kLength = 2;
  union {
    Element s[2];
    struct {
      Element x, y;
    };
    struct {
      Element s0, s1;
    };
    struct {
      Element lo, hi;
    };
    struct {
      Element even, odd;
    };
    UNISONO_DIALECT_SEVERAL(2, x, 0)
    UNISONO_DIALECT_SEVERAL(2, y, 1)
  };
};
template <class Element>
struct Elements<Element, 3> {
  static constexpr int kLength = 3;
  union {
    Element s[3];
    struct {
      Element x, y, z;
    };
    struct {
      Element s0, s1, s2;
    };
    UNISONO_DIALECT_SEVERAL(3, x, 0)
    UNISONO_DIALECT_SEVERAL(3, y, 1)
    UNISONO_DIALECT_SEVERAL(3, z, 2)
  };
};
template <class Element>
struct Elements<Element, 4> {
  static constexpr int kLength = 4;
  union {
    Element s[4];
    struct {
      Element x, y, z, w;
    };
    struct {
      Element s0, s1, s2, s3;
    };
    PartOf<Element, 4, 0, 1> lo;
    PartOf<Element, 4, 2, 1> hi;
    PartOf<Element, 4, 0, 2> even;
    PartOf<Element, 4, 1, 2> odd;
    UNISONO_DIALECT_SEVERAL(4, x, 0)
    UNISONO_DIALECT_SEVERAL(4, y, 1)
    UNISONO_DIALECT_SEVERAL(4, z, 2)
    UNISONO_DIALECT_SEVERAL(4, w, 3)
  };
};
template <class Element>
struct Elements<Element, 8> {
  union {
    Element s[8];
    struct {
      Element s0, s1, s2, s3, s4, s5, s6, s7;
    };
    PartOf<Element, 8, 0, 1> lo;
    PartOf<Element, 8, 4, 1> hi;
    PartOf<Element, 8, 0, 2> even;
    PartOf<Element, 8, 1, 2> odd;
  };
};
template <class Element>
struct Elements<Element, 16> {
  union {
    Element s[16];
    struct {
      Element s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sa, sb, sc, sd, se, sf;
    };
    struct {
      Element unnamed[10];
      Element sA, sB, sC, sD, sE, sF;
    };
    PartOf<Element, 16, 0, 1> lo;
    PartOf<Element, 16, 8, 1> hi;
    PartOf<Element, 16, 0, 2> even;
    PartOf<Element, 16, 1, 2> odd;
  };
};

template <class Element, int kLength>
struct alignas(sizeof(Element) * (kLength == 3 ? 4 : kLength)) Vector : Elements<Element, kLength> {
  Vector() = default;
  Vector(const Vector&) = default;
  Vector(Element all) {  // NOLINT(google-explicit-constructor): as in the dialect
    for (Element& element : this->s) element = all;
  }
  /// Of scalars and of vectors, in order.
  template <class First, class Second, class... More>
  Vector(const First& first, const Second& second, const More&... more) {
    int at = 0;
    put(at, first);
    put(at, second);
    (put(at, more), ...);
  }
  Vector& operator=(const Vector& from) {
    std::memcpy(this->s, from.s, sizeof this->s);
    return *this;
  }
  Element& operator[](std::size_t at) { return this->s[at]; }
  const Element& operator[](std::size_t at) const { return this->s[at]; }
  template <int... kAt>
  Swizzle<Element, kLength, kAt...>& elements() {
    static_assert(((kAt < kLength) && ...), "the vector has no such element");
    return *reinterpret_cast<Swizzle<Element, kLength, kAt...>*>(this->s);
  }
  template <int... kAt>
  const Swizzle<Element, kLength, kAt...>& elements() const {
    static_assert(((kAt < kLength) && ...), "the vector has no such element");
    return *reinterpret_cast<const Swizzle<Element, kLength, kAt...>*>(this->s);
  }

 private:
  template <class Given>
  void put(int& at, const Given& given) {
    if constexpr (std::is_void_v<typename AsVector<Given>::Type>) {
      this->s[at++] = static_cast<Element>(given);
    } else {
      const typename AsVector<Given>::Type all = given;
      for (const auto& element : all.s) this->s[at++] = element;
    }
  }
};

template <class Wanted, class Given>
Wanted vector_of(const Given& given) {
  if constexpr (std::is_void_v<typename AsVector<Given>::Type>) {
    return Wanted(static_cast<std::remove_cvref_t<decltype(std::declval<Wanted>().s[0])>>(given));
  } else {
    return given;
  }
}

#define UNISONO_DIALECT_OPERATOR(op)                                                                              \
  template <class Left, class Right>                                                                              \
  requires Operands<Left, Right> Common<Left, Right>                                                              \
  operator op(const Left& given_left, const Right& given_right) {                                                 \
    using Of = Common<Left, Right>;                                                                               \
    const Of left = vector_of<Of>(given_left);                                                                    \
    const Of right = vector_of<Of>(given_right);                                                                  \
    Of result;                                                                                                    \
    constexpr int kElements = static_cast<int>(sizeof(left.s) / sizeof(left.s[0]));                               \
    for (int i = 0; i < kElements; ++i) {                                                                         \
      result.s[i] = static_cast<std::remove_cvref_t<decltype(left.s[0])>>(left.s[i] op right.s[i]);               \
    }                                                                                                             \
    return result;                                                                                                \
  }                                                                                                               \
  template <class Left, class Right>                                                                              \
  requires(!std::is_void_v<typename AsVector<Left>::Type>) Left& operator op##=(Left& left, const Right& right) { \
    return left = left op right;                                                                                  \
  }
UNISONO_DIALECT_OPERATOR(+)
UNISONO_DIALECT_OPERATOR(-)
UNISONO_DIALECT_OPERATOR(*)
UNISONO_DIALECT_OPERATOR(/)
#undef UNISONO_DIALECT_OPERATOR
template <class Of>
requires(!std::is_void_v<typename AsVector<Of>::Type>) typename AsVector<Of>::Type operator-(const Of& of) {
  return 0 - of;
}

#undef UNISONO_DIALECT_PAIR
#undef UNISONO_DIALECT_TRIPLE
#undef UNISONO_DIALECT_QUAD
#undef UNISONO_DIALECT_EACH2
#undef UNISONO_DIALECT_AGAIN2
#undef UNISONO_DIALECT_THRICE2
#undef UNISONO_DIALECT_EACH3
#undef UNISONO_DIALECT_AGAIN3
#undef UNISONO_DIALECT_THRICE3
#undef UNISONO_DIALECT_EACH4
#undef UNISONO_DIALECT_AGAIN4
#undef UNISONO_DIALECT_THRICE4
#undef UNISONO_DIALECT_SEVERAL
#undef UNISONO_DIALECT_TRIPLES2
#undef UNISONO_DIALECT_TRIPLES3
#undef UNISONO_DIALECT_TRIPLES4
#undef UNISONO_DIALECT_QUADS2
#undef UNISONO_DIALECT_QUADS3
#undef UNISONO_DIALECT_QUADS4

}  // namespace unisono::dialect

#endif
