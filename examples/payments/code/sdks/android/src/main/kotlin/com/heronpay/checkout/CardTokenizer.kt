package com.heronpay.checkout

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import java.io.IOException
import java.time.YearMonth

/** A card as the buyer typed it. Never logged, never stored, gone after [CardTokenizer.tokenize]. */
class CardInput(val number: CharArray, val expiry: YearMonth, val cvc: CharArray) {

    fun wipe() {
        number.fill('0')
        cvc.fill('0')
    }

    override fun toString(): String = "CardInput(hidden)"
}

sealed interface TokenResult {
    data class Token(val value: String, val lastFour: String) : TokenResult

    data class Invalid(val field: String) : TokenResult

    data object Offline : TokenResult
}

/** Sends card data to the vault, which alone is in scope for PCI DSS, and gets a token back. */
class CardTokenizer(private val vault: VaultApi, private val today: () -> YearMonth = YearMonth::now) {

    suspend fun tokenize(card: CardInput): TokenResult = withContext(Dispatchers.IO) {
        try {
            firstInvalidField(card)?.let { return@withContext TokenResult.Invalid(it) }
            val token = vault.store(card.number, card.expiry, card.cvc)
            TokenResult.Token(token, String(card.number.takeLast(4).toCharArray()))
        } catch (_: IOException) {
            TokenResult.Offline
        } finally {
            card.wipe()
        }
    }

    private fun firstInvalidField(card: CardInput): String? = when {
        card.number.size !in 12..19 || !passesLuhn(card.number) -> "number"
        card.expiry < today() -> "expiry"
        card.cvc.size !in 3..4 -> "cvc"
        else -> null
    }
}

/** The check digit of ISO/IEC 7812; catches every single wrong digit and most swapped neighbours. */
internal fun passesLuhn(digits: CharArray): Boolean {
    val sum = digits.reversed().mapIndexed { index, char ->
        val digit = char.digitToIntOrNull() ?: return false
        if (index % 2 == 0) digit else (digit * 2).let { if (it > 9) it - 9 else it }
    }.sum()
    return sum % 10 == 0
}

interface VaultApi {
    @Throws(IOException::class)
    fun store(number: CharArray, expiry: YearMonth, cvc: CharArray): String
}
