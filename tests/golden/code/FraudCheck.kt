@file:JvmName("FraudChecks")

package com.example.fraud

import java.time.Instant
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.map as mapFlow

const val MAX_SCORE = 100
private val HIGH_RISK = setOf("XX", "YY")

/** What the rules say about a payment. */
data class Verdict(val score: Int, val reasons: List<String> = emptyList())

sealed interface Decision {
    object Accept : Decision
    data class Reject(val code: Int) : Decision
}

enum class Level { LOW, HIGH }

/**
 * Checks payments one by one.
 */
@Component
class FraudCheck<T : Payment>(
    private val rules: List<Rule<T>>,
    private val clock: () -> Instant,
) : Check<T>, AutoCloseable {

    private var seen = 0
    val busy: Boolean
        get() = seen > MAX_SCORE

    init {
        require(rules.isNotEmpty()) { "no rules" }
    }

    constructor(rule: Rule<T>) : this(listOf(rule), Instant::now)

    /** Scores a payment. */
    @Throws(FraudException::class)
    override suspend fun check(payment: T, strict: Boolean = false, vararg tags: String): Verdict {
        seen += 1
        val reasons = rules.filter { it.matches(payment) }.map { it.name }
        return when {
            reasons.isEmpty() -> Verdict(0)
            strict -> Verdict(MAX_SCORE, reasons)
            else -> Verdict(reasons.size * 10, reasons)
        }
    }

    override fun close() = rules.forEach(Rule<T>::close)

    fun <R> Flow<T>.verdicts(transform: (Verdict) -> R): Flow<R> = mapFlow { transform(check(it)) }

    companion object {
        const val NAME = "fraud"

        @JvmStatic
        fun <P : Payment> of(vararg rules: Rule<P>): FraudCheck<P> {
            return FraudCheck(rules.toList(), Instant::now)
        }
    }
}

object Registry {
    private val checks = mutableMapOf<String, FraudCheck<*>>()

    operator fun get(name: String): FraudCheck<*>? = checks[name]
}

fun String?.isRisky(): Boolean = this in HIGH_RISK

inline fun <reified T> List<T>.decide(limit: Int, block: (T) -> Int): Decision {
    for (item in this) {
        if (block(item) > limit) return Decision.Reject(403)
    }
    return Decision.Accept
}
