# What programs show of the jobs that wait and run: /metrics and the pages of `pulse serve`, and
# `pulse top` on a terminal that tmux keeps. A count of which the server saw a part is left out.
package Pulse::Shown;

use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Prometheus;
use Pulse::Serve;

sub new {
    my ($class, $node) = @_;
    my $socket = "$PostgreSQL::Test::Utils::tmp_check/shown";
    my $self = bless { serve => start_serve($node), http => HTTP::Tiny->new, socket => $socket },
      $class;
    local $ENV{NO_COLOR} = '1';
    $self->_tmux('new-session', '-d', '-x', '200', '-y', '32',
        "pulse top -i 200ms -d 'host=" . $node->host . ' port=' . $node->port
          . " dbname=postgres'");
    Pulse::Lines::pause() until $self->_tmux('capture-pane', '-p') =~ /^ready \d/m;
    return $self;
}

sub stop {
    my ($self) = @_;
    $self->_tmux('kill-server');
    stop_serve($self->{serve});
    return;
}

sub _tmux {
    my ($self, @arguments) = @_;
    my ($out) = PostgreSQL::Test::Utils::run_command(
        [ 'tmux', '-f', '/dev/null', '-S', $self->{socket}, @arguments ]);
    return $out;
}

sub _get {
    my ($self, $path) = @_;
    my $answer = $self->{http}->get("$self->{serve}{url}$path");
    die "$path: $answer->{status}\n" if !$answer->{success};
    return $answer->{content};
}

# Undefined for a part.
sub _number {
    my ($text) = @_;
    return 0 if ($text // '') eq '';
    my ($digits, $plus) = $text =~ /^([\d,]+)([+]?)/ or die "no count: $text\n";
    return $plus ? undef : $digits =~ tr/,//dr;
}

# The rows of a page's table: the text of each cell by its title. The name of a row is its link.
sub page_rows {
    my ($self, $path) = @_;
    my @rows;
    for my $row ($self->_get($path) =~ m{<tr>(.*?)</tr>}gs) {
        my %cells;
        while ($row =~ m{<td [^>]*data-title="([^"]*)"[^>]*>(.*?)</td>}gs) {
            my ($title, $content) = ($1, $2);
            $cells{$title} = $content =~ s{<[^>]*>}{}gr;
            $cells{name} //= $content =~ m{<a [^>]*>([^<]*)</a>} ? $1 : '';
        }
        push @rows, \%cells if %cells;
    }
    return @rows;
}

# The sums of a page's table, with the row of further names; no sum with a part.
sub _sums {
    my ($self, $path, %columns) = @_;
    my %sums = map { $_ => 0 } values %columns;
    for my $row ($self->page_rows($path)) {
        for my $column (keys %columns) {
            my $number = _number($row->{$column});
            $sums{ $columns{$column} } = undef if !defined $number;
            $sums{ $columns{$column} } += $number if defined $sums{ $columns{$column} };
        }
    }
    return \%sums;
}

sub _metrics {
    my ($self) = @_;
    my $metrics = Pulse::Prometheus->parse($self->_get('/metrics'));
    return { map { $_ => $metrics->value('pulse_queue_jobs', "state=$_") }
          qw(ready future running) };
}

sub _overview {
    my ($self) = @_;
    my %big = $self->_get('/')
      =~ m{<span class="name">(\w+)</span><span class="big">([^<]*)</span>}g;
    my %figure = (Ready => 'ready', Later => 'future', Parked => 'parked', Running => 'running');
    return { map { $figure{$_} => _number($big{$_}) } keys %figure };
}

sub _top {
    my ($self) = @_;
    my ($head) = $self->_tmux('capture-pane', '-p') =~ /^(ready \d.*)/m;
    my %shown = $head =~ /(ready|running|future) ([\d,]+[+]?)/g;
    return { map { $_ => _number($shown{$_}) } keys %shown };
}

# The figures of each program: those of all jobs, and those of jobs in queues (queued …).
sub figures {
    my ($self) = @_;
    return {
        '/metrics' => $self->_metrics,
        '/' => $self->_overview,
        '/tasks' => $self->_sums('/tasks', map { $_ => $_ } qw(ready future parked running)),
        '/queues' => $self->_sums('/queues', open => 'queued ready', parked => 'queued parked',
            running => 'queued running'),
        top => $self->_top,
    };
}

# The names of a page whose counts are not these: counts by name, as { title => number }.
sub wrong_names {
    my ($self, $path, $counts) = @_;
    my @wrong;
    for my $row (grep { $_->{name} ne '' } $self->page_rows($path)) {
        my $known = $counts->{ $row->{name} } // {};
        for my $title (keys %$known) {
            my $number = _number($row->{$title});
            push @wrong, "$row->{name} $title" if defined $number && $number != $known->{$title};
        }
    }
    return @wrong;
}

1;
