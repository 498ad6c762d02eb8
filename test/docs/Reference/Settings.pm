package Reference::Settings;

# docs/settings.md: a table of the settings, those for tests and those that only show apart.
use strict;
use warnings;
use utf8;
use Reference::Markdown qw(sentence code table mark);

# From the shortest unit to the longest, with how many make the next.
my @units = ([ms => 1000], [s => 60], [min => 60], [h => 24], ['d']);

my %set_by = (
    user => 'any role',
    superuser => 'superuser',
    sighup => 'file, reload',
    postmaster => 'file, restart',
    backend => 'at the connection',
    'superuser-backend' => 'superuser, at the connection',
);

sub page {
    my ($catalogue) = @_;
    my (@ordinary, @tests, @shown);
    for my $setting (@{ $catalogue->{settings} }) {
        my $list = $setting->{context} eq 'internal' ? \@shown
          : description($setting) =~ /for tests only/i ? \@tests : \@ordinary;
        push @{$list}, $setting;
    }
    my @parts = (introduction(), settings_table(@ordinary));
    push @parts, "## Shown only\n", "The server sets these.\n",
      table(['setting', ''], map { [code($_->{name}), sentence(description($_))] } @shown)
      if @shown;
    push @parts, "## For tests only\n", settings_table(@tests) if @tests;
    return join "\n", @parts;
}

sub introduction {
    return mark(), "# Settings\n", <<'TEXT';
A *superuser* changes a setting by `SET`, `ALTER DATABASE … SET` or `ALTER ROLE … SET`, or for the
server in `postgresql.conf` with a reload. A *file* setting stands in `postgresql.conf` only. Open
sessions keep what `ALTER DATABASE` and `ALTER ROLE` gave them. The view `pulse.settings` shows what
a session sees.

Write a number with its unit: `'2 s'`. Units are ms, s, min, h and d.
TEXT
}

sub settings_table {
    my (@settings) = @_;
    return table(['setting', 'default', 'range', 'set by', ''], map {
        my $setting = $_;
        [code($setting->{name}), code(value($setting, $setting->{boot_val})), range($setting),
         $set_by{ $setting->{context} } // $setting->{context}, sentence(description($setting))]
    } @settings);
}

sub description {
    my ($setting) = @_;
    return join ' ', grep { defined && length } @{$setting}{qw(short_desc extra_desc)};
}

# A number with the longest unit that keeps it whole; special values (-1, 0) as they are.
sub value {
    my ($setting, $value) = @_;
    return "'$value'" if $setting->{vartype} eq 'string';
    return $value if $setting->{vartype} !~ /^(?:integer|real)$/;
    my ($number, $unit) = ($value + 0, $setting->{unit});
    return "$number" if !defined $unit || $number <= 0;
    for my $step (@units) {
        my ($name, $next) = @{$step};
        next if $name ne $unit;
        last if !defined $next || $number % $next || $number < $next;
        $number /= $next;
        $unit = next_unit($name);
    }
    return "$number $unit";
}

sub next_unit {
    my ($name) = @_;
    my ($index) = grep { $units[$_][0] eq $name } 0 .. $#units;
    return $units[$index + 1][0];
}

sub range {
    my ($setting) = @_;
    my ($type, $least, $most) = @{$setting}{qw(vartype min_val max_val)};
    return 'on, off' if $type eq 'bool';
    return join ', ', @{ $setting->{enumvals} } if $type eq 'enum';
    return 'text' if $type eq 'string';
    # What an int can hold at most is no limit that matters.
    return "$least or more" if $most == 2**31 - 1;
    return value($setting, $least) . ' to ' . value($setting, $most);
}

1;
