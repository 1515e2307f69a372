// An object class of Ceph: `benchsum` adds the numbers of an object (f64, little-endian), as somebody would write it for this
// purpose alone. It adds them where they lie, one buffer after the other. The answer is one f64.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <rados/objclass.h>

CLS_VER(1, 0)
CLS_NAME(benchsum)

namespace {

constexpr size_t WIDTH = sizeof(double);
constexpr size_t LANES = 8, VECTORS = 4;
typedef double Vector __attribute__((vector_size(LANES * WIDTH)));

// The sum of `count` numbers, which need not be aligned. Several sums at once keep the adders of the processor busy.
double sum_of(const char *at, size_t count)
{
  Vector sums[VECTORS] = {};
  for (; count >= LANES * VECTORS; at += sizeof(sums), count -= LANES * VECTORS) {
    Vector values[VECTORS];
    memcpy(values, at, sizeof(values));
    for (size_t which = 0; which < VECTORS; which++)
      sums[which] += values[which];
  }
  double total = 0;
  for (const Vector &each : sums)
    for (size_t lane = 0; lane < LANES; lane++)
      total += each[lane];
  for (; count > 0; at += WIDTH, count--) {
    double value;
    memcpy(&value, at, WIDTH);
    total += value;
  }
  return total;
}

int sum(cls_method_context_t context, ceph::bufferlist *, ceph::bufferlist *out)
{
  ceph::bufferlist content;
  // Length 0: the whole object.
  int read = cls_cxx_read(context, 0, 0, &content);
  if (read < 0)
    return read;
  double total = 0;
  // A number may lie in two buffers or more. Its first bytes wait here.
  char part[WIDTH];
  size_t waiting = 0;
  for (const auto &buffer : content.buffers()) {
    const char *at = buffer.c_str();
    size_t left = buffer.length();
    if (waiting > 0) {
      size_t taken = std::min(WIDTH - waiting, left);
      memcpy(part + waiting, at, taken);
      waiting += taken, at += taken, left -= taken;
      if (waiting < WIDTH)
        continue;
      total += sum_of(part, 1);
    }
    total += sum_of(at, left / WIDTH);
    waiting = left % WIDTH;
    memcpy(part, at + left - waiting, waiting);
  }
  if (waiting > 0)
    return -EINVAL;
  out->append(reinterpret_cast<const char *>(&total), WIDTH);
  return 0;
}

}  // namespace

CLS_INIT(benchsum)
{
  cls_handle_t handle;
  cls_method_handle_t method;
  cls_register("benchsum", &handle);
  cls_register_cxx_method(handle, "sum", CLS_METHOD_RD, sum, &method);
}
