package com.heronpay.settlement;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.Currency;
import java.util.List;
import java.util.Objects;
import java.util.StringJoiner;

/**
 * The file that the bank collects every working day: one header, one line per payout, one trailer with control totals.
 *
 * <p>The bank refuses the whole file when the trailer does not match, so the totals are computed from the very lines
 * that are written and not from the database.
 */
public final class SettlementFile {

    private static final DateTimeFormatter DAY = DateTimeFormatter.BASIC_ISO_DATE;
    private static final int MAX_LINES = 50_000;

    /** One payout to one merchant. Amounts are minor units. */
    public record Line(String merchantId, String iban, Currency currency, long amount) {
        public Line {
            Objects.requireNonNull(iban, "iban");
            if (amount <= 0) {
                throw new IllegalArgumentException("payout to " + merchantId + " must be positive, is " + amount);
            }
        }

        BigDecimal major() {
            return BigDecimal.valueOf(amount, Math.max(0, currency.getDefaultFractionDigits()));
        }
    }

    private final LocalDate day;
    private final List<Line> lines;

    public SettlementFile(LocalDate day, List<Line> lines) {
        if (lines.size() > MAX_LINES) {
            throw new IllegalArgumentException("the bank takes " + MAX_LINES + " lines a file, got " + lines.size());
        }
        this.day = day;
        this.lines = List.copyOf(lines);
    }

    /** Returns the file's text; lines end with CR LF as the bank's host wants them. */
    public String render() {
        StringJoiner out = new StringJoiner("\r\n", "", "\r\n");
        out.add("H;HERONPAY;" + DAY.format(day));
        BigDecimal total = BigDecimal.ZERO;
        for (Line line : lines) {
            out.add(String.join(";", "P", line.merchantId(), line.iban(), line.currency().getCurrencyCode(),
                    line.major().toPlainString()));
            total = total.add(line.major());
        }
        out.add("T;" + lines.size() + ";" + total.toPlainString());
        return out.toString();
    }

    public String fileName() {
        return "heronpay-" + DAY.format(day) + ".csv";
    }
}
