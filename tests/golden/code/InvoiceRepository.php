<?php

declare(strict_types=1);

namespace App\Billing;

use App\Billing\Model\{Invoice, Line as InvoiceLine};
use Doctrine\ORM\EntityManagerInterface;
use Psr\Log\LoggerInterface as Logger;
use function array_map;

const DUE_DAYS = 30;
define('VAT_PERCENT', 19);

/**
 * Where invoices are kept.
 */
interface InvoiceStore
{
    public function find(string $id): ?Invoice;
}

trait Audited
{
    private array $trail = [];

    protected function audit(string $what, mixed ...$context): void
    {
        $this->trail[] = [$what, $context];
    }
}

enum InvoiceState: string
{
    case Open = 'open';
    case Paid = 'paid';

    public function label(): string
    {
        return ucfirst($this->value);
    }
}

/**
 * Keeps invoices in the database.
 */
#[Service(shared: true)]
final class InvoiceRepository extends Repository implements InvoiceStore
{
    use Audited;

    public const TABLE = 'invoices';
    private ?Invoice $last = null;

    public function __construct(
        private readonly EntityManagerInterface $entities,
        private Logger $logger,
    ) {
    }

    /** @return list<InvoiceLine> */
    #[Pure]
    public function lines(Invoice $invoice, int $limit = 10): array
    {
        return array_map(static fn (array $row): InvoiceLine => new InvoiceLine($row), $invoice->rows($limit));
    }

    public function find(string $id): ?Invoice
    {
        try {
            $this->last = $this->entities->find(Invoice::class, $id);
        } catch (NotFound $error) {
            $this->logger->warning("no invoice {$id}");
        }
        return $this->last;
    }

    abstract protected function archive(Invoice $invoice): void;

    public static function &shared(): static
    {
        return self::$instance;
    }
}

function due_date(\DateTimeImmutable $issued, int $days = DUE_DAYS): \DateTimeImmutable
{
    return $issued->modify("+{$days} days");
}

$repository = new InvoiceRepository($entities, $logger);
