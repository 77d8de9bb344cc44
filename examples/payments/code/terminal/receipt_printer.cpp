// Lays out the paper receipt: 32 columns, ESC/POS, nothing that a card holder may not see.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heron::terminal {

constexpr std::size_t kColumns = 32;
constexpr std::array<std::uint8_t, 3> kCut = {0x1d, 0x56, 0x00};

struct ReceiptLine {
    std::string label;
    std::int64_t minor_units;
};

/// Masks a card number as the schemes demand: only the last four digits survive.
std::string mask_card(std::string_view pan) {
    std::string masked(pan.size(), '*');
    const std::size_t shown = std::min<std::size_t>(4, pan.size());
    std::copy(pan.end() - shown, pan.end(), masked.end() - shown);
    return masked;
}

/// Formats minor units; `digits` is 2 for EUR and 0 for JPY.
std::string format_amount(std::int64_t minor_units, int digits) {
    std::string text = std::to_string(minor_units < 0 ? -minor_units : minor_units);
    if (digits > 0) {
        if (text.size() <= static_cast<std::size_t>(digits)) {
            text.insert(0, digits + 1 - text.size(), '0');
        }
        text.insert(text.size() - digits, ".");
    }
    return minor_units < 0 ? "-" + text : text;
}

class Receipt {
public:
    explicit Receipt(int currency_digits) : digits_(currency_digits) {}

    void add(ReceiptLine line) { lines_.push_back(std::move(line)); }

    std::vector<std::uint8_t> render(std::string_view pan) const {
        std::vector<std::uint8_t> out;
        std::int64_t total = 0;
        for (const auto& line : lines_) {
            append(out, row(line.label, format_amount(line.minor_units, digits_)));
            total += line.minor_units;
        }
        append(out, std::string(kColumns, '-'));
        append(out, row("TOTAL", format_amount(total, digits_)));
        append(out, row("CARD", mask_card(pan)));
        out.insert(out.end(), kCut.begin(), kCut.end());
        return out;
    }

private:
    static std::string row(std::string label, const std::string& value) {
        const std::size_t room = value.size() < kColumns ? kColumns - value.size() - 1 : 0;
        label.resize(room, ' ');
        return label + " " + value;
    }

    static void append(std::vector<std::uint8_t>& out, const std::string& text) {
        out.insert(out.end(), text.begin(), text.end());
        out.push_back('\n');
    }

    int digits_;
    std::vector<ReceiptLine> lines_;
};

}  // namespace heron::terminal
