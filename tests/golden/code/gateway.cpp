// The gateway to the card networks.
#include "gateway.hpp"

#include <memory>
#include <string>
#include <vector>

using std::string;
using Cents = long long;

namespace payments {

constexpr int kMaxRetries = 3;

namespace detail {
template <typename T>
T clamp(T value, T low, T high) {
  return value < low ? low : value > high ? high : value;
}
}  // namespace detail

/// A card network that answers synchronously.
template <typename Response>
class Network : public Base, private Logger {
 public:
  explicit Network(string name, int retries = kMaxRetries) : name_(std::move(name)), retries_(retries) {}
  virtual ~Network() = default;

  // Sends one message.
  virtual std::vector<Response> send(const std::string& message, Cents amount) const {
    std::vector<Response> answers;
    for (int attempt = 0; attempt < retries_; ++attempt) {
      answers.push_back(call(message, amount));
    }
    return answers;
  }

  bool operator==(const Network& other) const { return name_ == other.name_; }

 protected:
  Response call(const std::string& message, Cents amount) const;

 private:
  string name_;
  int retries_;
};

struct Receipt {
  string id;
  Cents amount = 0;
};

enum class State { kOpen, kPaid };

/// Refunds what was paid.
std::unique_ptr<Receipt> Gateway::refund(const Receipt& receipt) noexcept {
  auto log = [&](const string& text) { write(text); };
  log(receipt.id);
  return std::make_unique<Receipt>(receipt);
}

Gateway::~Gateway() { close(); }

Cents& Gateway::operator[](int index) { return cells_[index]; }

auto total(const std::vector<Receipt>& receipts) -> Cents {
  Cents sum = 0;
  for (const auto& receipt : receipts) sum += receipt.amount;
  return sum;
}

}  // namespace payments

extern "C" {
int gateway_version(void) { return 3; }
}
